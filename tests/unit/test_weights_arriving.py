"""Hashing while pieces arrive: in any order, of what is there already, and of what was read too early."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import pytest

from modules.hostside.arriving import Arriving
from modules.hostside.swarm_pieces import Piece, pieces
from modules.hostside.weights_blobs import PEER_PART, check_parts, part_of
from modules.hostside.weights_hashes import hub_hash
from modules.hostside.weights_stamp import Repository, WantedFile

PIECE = 1000
CONTENTS = {"a.safetensors": b"a" * 3500, "b.safetensors": bytes(range(250)) * 20, "config.json": b"{}"}


def wanted(name: str) -> WantedFile:
    content = CONTENTS[name]
    lfs = name.endswith(".safetensors")
    found = hub_hash(len(content), lfs=lfs)
    found.update(content)
    return WantedFile(name, len(content), found.hexdigest(), lfs)


FILES = [wanted(name) for name in CONTENTS]
CUT = pieces(FILES, PIECE)


@pytest.fixture
def parts(tmp_path: Path) -> dict[str, Path]:
    """Files as long as they will be, without content."""
    found = {file.digest: tmp_path / file.digest for file in FILES}
    for file in FILES:
        found[file.digest].write_bytes(bytes(file.size))
    return found


def put(parts: dict[str, Path], piece: Piece) -> None:
    file = FILES[piece.file]
    with parts[file.digest].open("r+b") as content:
        content.seek(piece.offset)
        content.write(CONTENTS[file.path][piece.offset : piece.offset + piece.size])


@pytest.mark.parametrize("seed", range(5))
def test_pieces_that_come_in_any_order_make_the_hub_s_hashes(parts: dict[str, Path], seed: int) -> None:
    arriving = Arriving(parts, FILES, CUT)
    have = [False] * len(CUT)
    order = list(range(len(CUT)))
    random.Random(seed).shuffle(order)
    for number in order[:-1]:
        put(parts, CUT[number])
        have[number] = True
        arriving.advance(have)
    put(parts, CUT[order[-1]])

    assert arriving.found() == {file.digest: file.digest for file in FILES}


def test_only_what_is_on_its_way_is_hashed(parts: dict[str, Path]) -> None:
    for piece in CUT:
        put(parts, piece)
    one = FILES[1].digest

    assert Arriving({one: parts[one]}, FILES, CUT).found() == {one: one}


def test_a_file_that_is_gone_or_too_short_has_no_hash(parts: dict[str, Path]) -> None:
    first, second, third = (file.digest for file in FILES)
    for piece in CUT:
        put(parts, piece)
    arriving = Arriving(parts, FILES, CUT)
    parts[first].unlink()
    parts[second].write_bytes(b"short")
    arriving.advance([True] * len(CUT))

    assert arriving.found() == {third: third}


def test_what_was_hashed_before_it_was_written_is_read_again(tmp_path: Path) -> None:
    repository = Repository(tmp_path, "acme/model")
    (repository.folder / "blobs").mkdir(parents=True)
    file = FILES[0]
    part = part_of(repository, file, PEER_PART)
    part.write_bytes(CONTENTS[file.path])
    read: list[int] = []

    wrong = check_parts(repository, [file], PEER_PART, read.append, found={file.digest: hashlib.sha256().hexdigest()})

    assert wrong == []
    assert repository.blob(file).read_bytes() == CONTENTS[file.path]
    assert sum(read) == file.size


def test_what_was_hashed_is_not_read_again_unless_its_size_is_another(tmp_path: Path) -> None:
    repository = Repository(tmp_path, "acme/model")
    (repository.folder / "blobs").mkdir(parents=True)
    whole, short = FILES[0], FILES[1]
    # Not the content: read, it would be found wrong.
    part_of(repository, whole, PEER_PART).write_bytes(bytes(whole.size))
    part_of(repository, short, PEER_PART).write_bytes(b"short")

    wrong = check_parts(
        repository,
        [whole, short],
        PEER_PART,
        lambda _: None,
        found={file.digest: file.digest for file in (whole, short)},
    )

    assert len(wrong) == 1
    assert "b.safetensors: 5 bytes, the hub publishes 5000" in wrong[0]
