"""The lab's model: what its weights say, told without an engine."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from modules.lab.model import recital, repository, weights
from modules.lab.model.tokenizer import CHANNEL, MESSAGE, VOCABULARY_SIZE, read_ranks, special_tokens, tokenizer_json

WORDS = [word.encode() for word in ("assistant", "final", *recital.TEXT)]
RANKS = {word: 1000 + number for number, word in enumerate(WORDS)}
ROW = 2 * weights.HIDDEN


@pytest.fixture(scope="module")
def tables() -> tuple[bytes, bytes]:
    by_name = {tensor.name: tensor.data for shard in weights.shards(RANKS) for tensor in shard}
    return by_name["model.embed_tokens.weight"], by_name["lm_head.weight"]


def follow(token: int, tables: tuple[bytes, bytes]) -> int:
    """The token with the greatest logit, for a model whose layers add nothing: one-hot row in, one column out."""
    embeddings, successors = tables
    row = embeddings[token * ROW : (token + 1) * ROW]
    places = [place for place in range(weights.HIDDEN) if row[2 * place : 2 * place + 2] != b"\0\0"]
    assert len(places) == 1
    column = successors[2 * places[0] + 1 :: ROW]
    assert len(column.strip(b"\0")) == 1, "one successor"
    return len(column.rstrip(b"\0")) - 1


def test_after_a_harmony_prompt_it_opens_the_final_channel_and_recites_for_ever(tables: tuple[bytes, bytes]) -> None:
    said, token = [], RANKS[b"assistant"]
    for _ in range(3 + 2 * len(recital.TEXT)):
        token = follow(token, tables)
        said.append(token)
    text = [RANKS[piece.encode()] for piece in recital.TEXT]
    assert said == [CHANNEL, RANKS[b"final"], MESSAGE, *text, *text]


@pytest.mark.parametrize("token", [0, 999, 5000, VOCABULARY_SIZE - 1])
def test_after_any_other_token_it_begins_with_its_text(token: int, tables: tuple[bytes, bytes]) -> None:
    assert follow(token, tables) == RANKS[recital.TEXT[0].encode()]


def test_no_piece_of_the_text_comes_twice_and_all_fit_the_hidden_size() -> None:
    tokens = recital.chain(RANKS)
    assert len(set(tokens)) == len(tokens) < weights.HIDDEN


def test_shards_are_safetensors_files_that_the_index_covers(tmp_path: Path) -> None:
    o200k = b"".join(base64_line(token, rank) for token, rank in RANKS.items())
    repository.write_files(tmp_path, o200k)
    weight_map = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    held: dict[str, str] = {}
    for path in sorted(tmp_path.glob("*.safetensors")):
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        header.pop("__metadata__")
        assert 8 + length + max(entry["data_offsets"][1] for entry in header.values()) == len(content)
        held |= dict.fromkeys(header, path.name)
    assert held == weight_map
    assert len(set(weight_map.values())) == 3
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"original", "metal"}


def test_a_commit_changes_with_any_file(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"1")
    (tmp_path / "b.txt").write_bytes(b"2")
    before = repository.commit_of(repository.listing(tmp_path))
    (tmp_path / "a.bin").write_bytes(b"3")
    assert repository.commit_of(repository.listing(tmp_path)) != before
    assert len(before) == 40


def test_the_tokenizer_merges_as_ranks_say_and_knows_the_special_tokens(tmp_path: Path) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"bc": 257, b"abc": 258, "é".encode(): 259}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_json(ranks)))
    tokenizer = Tokenizer.from_file(str(path))
    assert tokenizer.encode("abc").ids == [258]
    assert tokenizer.encode("abbc").ids == [256, 257]
    assert tokenizer.encode("é!").ids == [259, ord("!")]
    assert tokenizer.encode("<|start|>ab<|message|>").tokens == ["<|start|>", "ab", "<|message|>"]
    assert tokenizer.decode(tokenizer.encode("abc é!").ids) == "abc é!"
    assert max(special_tokens()) == VOCABULARY_SIZE - 1


def test_ranks_are_read_as_tiktoken_writes_them() -> None:
    assert read_ranks(b"IQ== 0\nIg== 1\n") == {b"!": 0, b'"': 1}


def base64_line(token: bytes, rank: int) -> bytes:
    return base64.b64encode(token) + f" {rank}\n".encode()
