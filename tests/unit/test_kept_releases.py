"""Which releases stay startable, and that what they need is never called unneeded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.hostside import kept_releases
from modules.hostside.image_state import served
from modules.hostside.kept_releases import kept, kept_of
from modules.hostside.ledger import Ledger
from modules.hostside.unneeded_weights import released

NAMES = ["r1", "r2", "r3", "r4"]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Four releases, of which the third was bad, the fourth is in force and the second was good last."""
    ledger = Ledger("svc", tmp_path)
    ledger.directory.mkdir(parents=True)
    for at, name in enumerate(NAMES):
        events = [{"at": f"2026-01-0{at + 1}T00:00:00Z", "event": "ready" if name == "r4" else "good"}]
        if name == "r3":
            events.append({"at": "2026-01-09T00:00:00Z", "event": "withdrawn"})
        release = {"image": f"tinderbox/x:{name}", "model": "owner/name", "commit": name}
        ledger.entry_file(name).write_text(json.dumps({"id": name, "release": release, "events": events}))
    (ledger.directory / "current").symlink_to("r4.json")
    (ledger.directory / "last-good").symlink_to("r2.json")
    return ledger


def test_without_a_wish_the_one_in_force_and_the_last_good_one_are_kept(ledger: Ledger) -> None:
    assert [(one.release, one.why) for one in kept_of(ledger)] == [("r4", "current"), ("r2", "last-good")]


def test_more_are_kept_where_the_fleet_file_says_but_none_that_was_bad(ledger: Ledger) -> None:
    assert [one.release for one in kept_of(ledger, 2)] == ["r4", "r2", "r1"]
    assert [one.release for one in kept_of(ledger, 9)] == ["r4", "r2", "r1"]


def test_images_and_weights_of_those_are_needed(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert served(tmp_path) == {"tinderbox/x:r4", "tinderbox/x:r2"}
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "services.json").write_text(json.dumps({"services": ["svc"], "keep": {"svc": 2}}))
    for module in (kept_releases.__name__, "kept_releases"):
        monkeypatch.setattr(f"{module}.SETTINGS", settings)
    assert served(tmp_path) == {"tinderbox/x:r4", "tinderbox/x:r2", "tinderbox/x:r1"}
    assert released(tmp_path) == {("owner/name", name) for name in ("r4", "r2", "r1")}


def test_a_release_that_can_not_be_read_leaves_nothing_unneeded(ledger: Ledger, tmp_path: Path) -> None:
    ledger.entry_file("r2").write_text("half")
    assert served(tmp_path) is None
    assert [one.entry for one in kept(tmp_path)][1] is None
