"""A service whose ledger can not be read: what it needs is not known, so nothing of it may go."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modules.hostside import disk_state, removal_images, removal_weights
from modules.hostside.docker_store import Image, Store
from modules.hostside.removal import IMAGES, WEIGHTS, planned
from modules.hostside.unneeded_weights import released

COMMIT, NAME, IMAGE = "a" * 40, "owner/name", "tinderbox/vllm:0123456789ab"
STORE = Store(images=(Image("sha256:1", (IMAGE,), 1),))
READ = json.dumps({"release": {"model": "other/model", "commit": COMMIT, "image": "tinderbox/vllm:ba9876543210"}})


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with a service of a release `now`, and with a revision that was verified."""
    repository = SimpleNamespace(name=NAME, folder=tmp_path / "model", home=tmp_path, snapshot=lambda _: tmp_path)
    before = SimpleNamespace(before=lambda _: SimpleNamespace(had=lambda *_: False), brought=lambda *_: [])
    # As the programs find each other, flat on a host.
    for module in ("removal_weights", "modules.hostside.removal_weights"):
        monkeypatch.setattr(f"{module}.revisions", lambda: [(repository, COMMIT)])
    for module in ("disk_state", "removal_weights"):
        monkeypatch.setattr(f"modules.hostside.{module}.former", before)
    monkeypatch.setattr(removal_weights, "open_files", lambda _: {})
    ledger = tmp_path / "ledger" / "gpt-oss"
    ledger.mkdir(parents=True)
    (ledger / "current").symlink_to("now.json")
    return tmp_path


@pytest.mark.parametrize("text", [None, "", "{", "{}", '{"release": null}'])
def test_nothing_goes_that_it_may_need(state: Path, text: str | None) -> None:
    """`text`: of the entry, as a lost power may leave it; None: it is gone."""
    entry = state / "ledger" / "gpt-oss" / "now.json"
    if text is not None:
        entry.write_text(text)
    assert going(state) == []
    assert released(state) is None
    assert all("its ledger can not be read" in " ".join(one["needed"]) for one in told(state))
    entry.write_text(READ)
    assert going(state) == [f"image {IMAGE}", f"weights {NAME}@{COMMIT[:12]}"]
    assert [one["needed"] for one in told(state)] == [[], []]
    assert released(state) == {("other/model", COMMIT)}


def told(state: Path) -> list[dict[str, Any]]:
    needed = disk_state.needs(state)
    return [*disk_state.images(STORE, (), needed), *disk_state.weights((), needed, ())]


def going(state: Path) -> list[str]:
    things = [*removal_images.things(STORE, state), *removal_weights.things(STORE, state, state / "settings")]
    return [one.title for one in planned(things, [IMAGES, WEIGHTS], ["gpt-oss"]).going]
