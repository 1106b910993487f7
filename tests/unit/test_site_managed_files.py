"""Files that are placed and taken away, by the shell that hosts have."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from modules.facts.files import FileState, FileStates
from modules.operations import managed_files
from modules.operations.managed_files import ManagedFile, is_settled, settle, unsettled


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where files go; root's ownership is left out, since tests need not run as root."""
    monkeypatch.setattr(managed_files, "UNDO", str(tmp_path / "undo"))
    chown = tmp_path / "bin" / "chown"
    chown.parent.mkdir()
    chown.write_text("#!/bin/sh\n")
    chown.chmod(0o755)
    monkeypatch.setenv("PATH", str(chown.parent), prepend=":")
    return tmp_path


def run(files: list[ManagedFile]) -> None:
    for command in settle(files):
        subprocess.run(
            ["sh", "-c", command.get_raw_value()],
            input=str(command.connector_arguments.get("_stdin", "")),
            text=True,
            check=True,
        )


def states(paths: list[Path]) -> dict[str, FileState | None]:
    command = FileStates().command([str(path) for path in paths])
    done = subprocess.run(["sh", "-c", command.get_raw_value()], capture_output=True, text=True, check=True)
    return FileStates().parse(done.stdout.splitlines())


def as_roots(found: dict[str, FileState | None]) -> dict[str, FileState | None]:
    return {path: FileState(s.sha256, s.mode, "root:root") if s else None for path, s in found.items()}


def test_a_placed_file_is_as_it_should_be_and_leaves_nothing_beside_it(root: Path) -> None:
    path = root / "etc" / "new place" / "it's.conf"
    file = ManagedFile(str(path), "a = 'b' $HOME `x`\n\n", mode="600")
    run([file])
    assert path.read_text() == "a = 'b' $HOME `x`\n\n"
    assert [found.name for found in path.parent.iterdir()] == ["it's.conf"]
    assert unsettled([file], as_roots(states([path]))) == []


def test_many_runs_that_settle_one_file_at_once_do_not_disturb_each_other(root: Path) -> None:
    path = root / "etc" / "token"
    path.parent.mkdir()
    path.write_text("theirs\n")
    texts = [f"{number}\n" * 2000 for number in range(24)]
    with ThreadPoolExecutor(12) as runs:
        list(runs.map(lambda text: run([ManagedFile(str(path), text, mode="600")]), texts))
    assert path.read_text() in texts
    assert [found.name for found in path.parent.iterdir()] == ["token"]
    kept = root / "undo" / root.relative_to("/") / "etc"
    assert [(found.name, found.read_text()) for found in kept.iterdir()] == [("token", "theirs\n")]


def test_content_is_in_no_argument(root: Path) -> None:
    (command,) = settle([ManagedFile(str(root / "secret"), "hunter2\n")])
    assert "hunter2" not in command.get_raw_value()


def test_what_was_there_is_kept_once(root: Path) -> None:
    there, new = root / "there", root / "new"
    there.write_text("theirs\n")
    for content in ("ours\n", "ours again\n", None):
        run([ManagedFile(str(path), content) for path in (there, new)])
    assert not there.exists()
    kept = root / "undo" / root.relative_to("/")
    assert (kept / "there").read_text() == "theirs\n"
    assert (kept / "new.absent").exists()
    assert not (kept / "new").exists()


def test_taking_away_what_is_not_there_is_fine(root: Path) -> None:
    run([ManagedFile(str(root / "nothing"), None)])


@pytest.mark.parametrize(
    ("state", "settled"),
    [
        (FileState("2c624232cdd221771294dfbb310aca000a0df6ac8b66b696d90ef06fdefb64a3", "644", "root:root"), False),
        (FileState("a948904f2f0f479b8f8197694b30184b0d2ed1c1cd2a1ec0fb85d299a192a447", "644", "root:root"), True),
        (FileState("a948904f2f0f479b8f8197694b30184b0d2ed1c1cd2a1ec0fb85d299a192a447", "666", "root:root"), False),
        (FileState("a948904f2f0f479b8f8197694b30184b0d2ed1c1cd2a1ec0fb85d299a192a447", "644", "spark:root"), False),
        (None, False),
    ],
)
def test_content_mode_and_owner_decide(state: FileState | None, settled: bool) -> None:
    assert is_settled(ManagedFile("/x", "hello world\n"), state) is settled


def test_an_unwanted_file_is_settled_when_it_is_gone() -> None:
    assert is_settled(ManagedFile("/x", None), None)
    assert not is_settled(ManagedFile("/x", None), FileState("0" * 64, "644", "root:root"))
