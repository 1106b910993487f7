"""What no release needs goes, and nothing else does."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from modules.hostside import weights_stamp
from modules.hostside.unneeded_weights import released, remove, unneeded
from modules.hostside.weights_before import note, note_file
from modules.hostside.weights_stamp import Repository, WantedFile

OLD, NEW, OTHERS = "a" * 40, "b" * 40, "c" * 40
NAME = "owner/name"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two revisions that share a file, and one of somebody else, without a stamp, that shares another."""
    for module in ("weights_stamp", "modules.hostside.weights_stamp"):
        monkeypatch.setattr(f"{module}.STAMPS", tmp_path / "stamps")
    home = tmp_path / "home"
    note(Repository(home, NAME))
    put(home, OLD, {"config.json": b"old", "shared.bin": b"shared" * 999, "theirs.bin": b"theirs" * 999}, ref="v1")
    put(home, NEW, {"config.json": b"new", "shared.bin": b"shared" * 999}, ref="main")
    put(home, OTHERS, {"theirs.bin": b"theirs" * 999}, stamped=False)
    return home


def put(home: Path, commit: str, content: dict[str, bytes], *, ref: str | None = None, stamped: bool = True) -> None:
    repository = Repository(home, NAME)
    files = [WantedFile(name, len(data), hashlib.sha256(data).hexdigest(), lfs=True) for name, data in content.items()]
    for file in files:
        blob, entry = repository.blob(file), repository.snapshot(commit) / file.path
        blob.parent.mkdir(parents=True, exist_ok=True)
        entry.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content[file.path])
        entry.symlink_to(f"../../blobs/{file.digest}")
    if ref is not None:
        repository.reference(ref).parent.mkdir(parents=True, exist_ok=True)
        repository.reference(ref).write_text(commit)
    if stamped:
        weights_stamp.write_stamp(repository, commit, {"include": [], "exclude": []}, files, "now")


def read(home: Path, commit: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Repository(home, NAME).snapshot(commit).iterdir()}


def test_a_revision_that_nothing_uses_goes_and_the_blobs_of_others_stay(home: Path) -> None:
    (found,) = unneeded(home, {(NAME, NEW)})
    assert (found.commit, [blob.read_bytes() for blob in found.blobs]) == (OLD, [b"old"])
    assert found.bytes >= 3

    remove(found)

    assert read(home, NEW) == {"config.json": b"new", "shared.bin": b"shared" * 999}
    assert read(home, OTHERS) == {"theirs.bin": b"theirs" * 999}
    assert not Repository(home, NAME).snapshot(OLD).exists()
    assert [path.name for path in (Repository(home, NAME).folder / "refs").iterdir()] == ["main"]
    assert unneeded(home, {(NAME, NEW)}) == []


def test_what_was_never_verified_here_and_what_lies_in_another_home_is_left_alone(home: Path, tmp_path: Path) -> None:
    assert {found.commit for found in unneeded(home, set())} == {OLD, NEW}
    assert unneeded(tmp_path / "elsewhere", set()) == []


def test_a_removal_that_was_cut_is_finished_by_the_next(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = unneeded(home, {(NAME, NEW)})
    with monkeypatch.context() as cut:
        cut.setattr("weights_before._drop_empty", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            remove(found)

    (again,) = unneeded(home, {(NAME, NEW)})
    remove(again)

    assert unneeded(home, {(NAME, NEW)}) == []
    assert not Repository(home, NAME).snapshot(OLD).exists()


def test_current_and_last_good_releases_need_theirs(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger" / "gpt-oss"
    ledger.mkdir(parents=True)
    for link, commit in (("current", NEW), ("last-good", OLD)):
        (ledger / f"{link}-1.json").write_text(json.dumps({"release": {"model": NAME, "commit": commit}}))
        (ledger / link).symlink_to(f"{link}-1.json")
    (ledger / "third.json").write_text(json.dumps({"release": {"model": NAME, "commit": OTHERS}}))

    assert released(tmp_path) == {(NAME, NEW), (NAME, OLD)}


def test_a_revision_that_was_here_before_tinderbox_stays(home: Path) -> None:
    path = note_file(Repository(home, NAME))
    path.write_text(json.dumps({"home_was_there": True, "entries": {f"snapshots/{OLD}": "folder"}}))
    assert unneeded(home, {(NAME, NEW)}) == []
    assert [found.commit for found in unneeded(home, set())] == [NEW]


def test_a_revision_of_which_it_is_not_known_whether_it_was_here_before_stays(home: Path) -> None:
    """As a removal in layers has it."""
    note_file(Repository(home, NAME)).unlink()
    assert unneeded(home, set()) == []


def test_what_its_user_has_put_beside_a_revision_stays(home: Path) -> None:
    repository = Repository(home, NAME)
    theirs = repository.folder / "blobs" / ("d" * 64)
    theirs.write_bytes(b"more")
    (repository.snapshot(OLD) / "more.bin").symlink_to(f"../../blobs/{theirs.name}")
    (repository.snapshot(OLD) / "notes.txt").write_text("mine")
    repository.reference("mine").write_text(OTHERS)
    for found in unneeded(home, set()):
        remove(found)
    assert (repository.snapshot(OLD) / "more.bin").read_bytes() == b"more"
    assert (repository.snapshot(OLD) / "notes.txt").read_text() == "mine"
    assert [path.name for path in (repository.folder / "refs").iterdir()] == ["mine"]
    assert read(home, OTHERS) == {"theirs.bin": b"theirs" * 999}
