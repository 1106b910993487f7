"""Where a release stands, by what happened to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modules.hostside import release_needs
from modules.hostside.release_needs import lacks
from modules.hostside.release_story import bars, failure, may_become_good, put_back, standing, was_good


def entry(*names: str, **last: str) -> dict[str, Any]:
    events: list[dict[str, str]] = [{"event": name, "at": f"t{at}"} for at, name in enumerate(names)]
    if events:
        events[-1] |= last
    return {"events": events}


@pytest.mark.parametrize(
    ("names", "where"),
    [
        ((), "new"),
        # As the ledger was written before releases were staged.
        (("installed",), "new"),
        (("installed", "ready", "good"), "good"),
        (("activated",), "trying"),
        (("activated", "ready"), "ready"),
        (("activated", "ready", "gate not measured"), "ready"),
        (("activated", "ready", "good"), "good"),
        (("activated", "ready", "good", "stopped"), "good"),
        (("activated", "failed to start", "rolled back"), "bad"),
        (("activated", "ready", "gate failed", "rolled back"), "bad"),
        (("activated", "ready", "good", "withdrawn"), "bad"),
        (("activated", "ready", "gate failed", "activated"), "trying"),
        (("activated", "ready", "good", "restored"), "good"),
        (("activated", "ready", "good", "failed to start", "restored"), "ready"),
    ],
)
def test_where_it_stands(names: tuple[str, ...], where: str) -> None:
    assert standing(entry(*names)) == where
    assert (failure(entry(*names)) is not None) == (where == "bad")


def test_of_an_entry_that_is_not_there_nothing_is_known() -> None:
    assert (standing(None), failure(None), was_good(None), put_back(None)) == ("new", None, False, False)


@pytest.mark.parametrize(
    ("names", "last_good", "barred"),
    [
        (("failed to start",), None, True),
        (("failed to start",), "other", True),
        (("gate failed",), "other", True),
        # It was left in force, for want of another.
        (("gate failed",), None, False),
        # The cause lies outside of what was good.
        (("good", "failed to start"), "mine", False),
        (("good", "withdrawn"), "other", True),
        (("good",), "other", False),
    ],
)
def test_what_is_not_tried_again(names: tuple[str, ...], last_good: str | None, barred: bool) -> None:
    assert (bars(entry(*names), "mine", last_good) is not None) == barred


@pytest.mark.parametrize(
    ("names", "may"),
    [
        (("activated", "ready"), True),
        (("activated", "ready", "good"), True),
        (("activated", "ready", "gate failed"), True),
        (("activated",), False),
        (("activated", "ready", "activated"), False),
        (("activated", "ready", "failed to start"), False),
    ],
)
def test_only_what_was_seen_ready_may_become_good(names: tuple[str, ...], may: bool) -> None:
    assert may_become_good(entry(*names)) == may


def test_what_came_back_is_told_from_what_was_wanted() -> None:
    assert put_back(entry("activated", "ready", "good", "restored"))
    assert put_back(entry("activated", instead="other"))
    assert not put_back(entry("activated", "good", "restored", "activated", "ready"))


def test_what_is_gone_from_the_host_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = {"image": "tinderbox/x:1", "model": "o/m", "commit": "c", "environment": {"HF_HUB_CACHE": str(tmp_path)}}
    monkeypatch.setattr(release_needs, "run", lambda *_: None)
    assert lacks({"release": release}) == ["its image tinderbox/x:1", "the weights of o/m at c"]
    monkeypatch.setattr(release_needs, "run", lambda *_: "sha256:1\n")
    (tmp_path / "models--o--m" / "snapshots" / "c").mkdir(parents=True)
    assert lacks({"release": release}) == []
    assert lacks(None) == ["its entry in the ledger"]
