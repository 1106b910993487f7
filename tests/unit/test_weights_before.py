"""A user's Hugging Face cache is as it was once what came by Tinderbox was taken back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from modules.hostside import weights_before, weights_stamp
from modules.hostside.weights_before import before, brought, note, note_file, take_back
from modules.hostside.weights_stamp import Repository, WantedFile

NAME, OURS, THEIRS = "owner/name", "a" * 40, "b" * 40


@pytest.fixture(autouse=True)
def stamps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in ("weights_stamp", "modules.hostside.weights_stamp"):
        monkeypatch.setattr(f"{module}.STAMPS", tmp_path / "stamps")
    return tmp_path / "stamps"


def put(home: Path, commit: str, content: dict[str, bytes], *, stamped: bool) -> Repository:
    repository = Repository(home, NAME)
    files = [WantedFile(name, len(data), hashlib.sha256(data).hexdigest(), lfs=True) for name, data in content.items()]
    for file in files:
        blob, entry = repository.blob(file), repository.snapshot(commit) / file.path
        blob.parent.mkdir(parents=True, exist_ok=True)
        entry.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content[file.path])
        if not entry.is_symlink():
            entry.symlink_to(f"../../blobs/{file.digest}")
    if stamped:
        weights_stamp.write_stamp(repository, commit, {"include": [], "exclude": []}, files, "now")
        repository.tree(commit).parent.mkdir(exist_ok=True)
        repository.tree(commit).write_text("{}")
        (repository.folder / "refs").mkdir(exist_ok=True)
        (repository.folder / "refs" / "main").write_text(commit)
        (repository.folder / ".tinderbox.lock").touch()
    return repository


def tree(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        kind = f"-> {path.readlink()}" if path.is_symlink() else "folder" if path.is_dir() else path.read_text()
        found[str(path.relative_to(folder))] = kind
    return found


def leave(repository: Repository, commit: str) -> None:
    had = before(repository)
    assert had is not None
    take_back(repository, commit, had)


def test_a_model_that_was_not_there_goes_whole_and_others_stay(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "hub" / "models--x--y").mkdir(parents=True)
    was = tree(home)
    note(Repository(home, NAME))
    repository = put(home, OURS, {"a.bin": b"a", "b.bin": b"b"}, stamped=True)
    assert tree(home) != was
    leave(repository, OURS)
    assert tree(home) == was
    assert list(weights_stamp.STAMPS.glob("*.json")) == []
    assert not note_file(repository).exists()


def test_a_home_that_was_not_there_goes_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    note(Repository(home, NAME))
    leave(put(home, OURS, {"a.bin": b"a"}, stamped=True), OURS)
    assert not home.exists()


def test_files_that_were_there_stay_and_nothing_of_them_is_ours(tmp_path: Path) -> None:
    home = tmp_path / "home"
    repository = put(home, OURS, {"a.bin": b"a"}, stamped=False)
    put(home, THEIRS, {"a.bin": b"a", "c.bin": b"c"}, stamped=False)
    was = tree(home)
    note(repository)
    put(home, OURS, {"a.bin": b"a", "b.bin": b"b"}, stamped=True)
    had = before(repository)
    assert had is not None
    assert [path.read_bytes() for path in brought(repository, OURS, had)] == [b"b"]
    leave(repository, OURS)
    assert tree(home) == was


def test_what_somebody_has_fetched_since_stays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    note(Repository(home, NAME))
    repository = put(home, OURS, {"a.bin": b"a", "shared.bin": b"s"}, stamped=True)
    put(home, THEIRS, {"c.bin": b"c", "shared.bin": b"s"}, stamped=False)
    leave(repository, OURS)
    assert (repository.snapshot(THEIRS) / "shared.bin").read_bytes() == b"s"
    assert not repository.snapshot(OURS).exists()


def test_a_file_that_lay_in_a_snapshot_itself_lies_there_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    repository = Repository(home, NAME)
    entry = repository.snapshot(OURS) / "a.bin"
    entry.parent.mkdir(parents=True)
    entry.write_bytes(b"a")
    was = tree(home)
    note(repository)
    entry.unlink()
    put(home, OURS, {"a.bin": b"a"}, stamped=True)
    leave(repository, OURS)
    assert tree(home) == was


def was_a_file(home: Path) -> tuple[Repository, Path]:
    """A cache without links, in which Tinderbox has made one since."""
    repository = Repository(home, NAME)
    entry = repository.snapshot(OURS) / "a.bin"
    entry.parent.mkdir(parents=True)
    entry.write_bytes(b"a")
    note(repository)
    entry.unlink()
    return put(home, OURS, {"a.bin": b"a"}, stamped=True), entry


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_file_that_lies_there_again_is_still_its_users(tmp_path: Path) -> None:
    repository, entry = was_a_file(tmp_path / "home")
    os.chown(entry.resolve(), 4711, 4711)
    leave(repository, OURS)
    assert not entry.is_symlink()
    assert entry.stat().st_uid == 4711


@pytest.mark.parametrize("half", [False, True])
def test_a_removal_writes_through_no_link_of_the_caches_user(tmp_path: Path, half: bool) -> None:
    """It is root's, and the folder is not."""
    repository, entry = was_a_file(tmp_path / "home")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("root's")
    if half:
        entry.with_name(".a.bin.tinderbox").symlink_to(elsewhere)
    else:
        entry.unlink()
        entry.symlink_to(elsewhere)
    leave(repository, OURS)
    assert elsewhere.read_text() == "root's"
    assert elsewhere.stat().st_nlink == 1
    assert entry.is_symlink() != half


def test_a_reference_that_was_there_names_again_what_it_named(tmp_path: Path) -> None:
    """Or its user's tools would look for a commit that is gone, and not find the one that is there."""
    home = tmp_path / "home"
    repository = put(home, THEIRS, {"a.bin": b"a"}, stamped=False)
    main = repository.folder / "refs" / "main"
    main.parent.mkdir()
    main.write_text(THEIRS)
    was = tree(home)
    note(repository)
    put(home, OURS, {"a.bin": b"a", "b.bin": b"b"}, stamped=True)
    assert main.read_text() == OURS
    leave(repository, OURS)
    assert tree(home) == was


def test_a_removal_that_was_cut_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    note(Repository(home, NAME))
    repository = put(home, OURS, {"a.bin": b"a"}, stamped=True)
    with monkeypatch.context() as cut:
        cut.setattr(weights_before, "_drop_empty", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            leave(repository, OURS)
    leave(repository, OURS)
    assert not home.exists()


def test_a_note_is_made_once_and_not_after_a_stamp(tmp_path: Path) -> None:
    home = tmp_path / "home"
    repository = put(home, OURS, {"a.bin": b"a"}, stamped=True)
    note(repository)
    assert before(repository) is None
    assert not note_file(repository).exists()
