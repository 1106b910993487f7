"""The program that reads checkpoints' headers on a host."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from modules.hostside.checkpoint import INDEX, structure, summarize
from modules.lab.model.weights import Tensor, serialize
from modules.memory import from_summary

CONFIG = {
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_size": 128,
    "id2label": {"0": "no size"},
    "quantization_config": {"quant_method": "modelopt", "ignore": ["lm_head"] * 1000},
}


def tensor(name: str, *shape: int) -> Tensor:
    count = 1
    for length in shape:
        count *= length
    return Tensor(name, shape, bytes(2 * count))


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Two shards with an index and a config."""
    first, second = [tensor("a", 3, 4), tensor("b", 5)], [tensor("c", 7)]
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(serialize(first))
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(serialize(second))
    placed = {one.name: "model-00001-of-00002.safetensors" for one in first}
    placed |= {one.name: "model-00002-of-00002.safetensors" for one in second}
    (tmp_path / INDEX).write_text(json.dumps({"metadata": {"total_size": 48}, "weight_map": placed}))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def test_a_whole_snapshot_has_no_problem(snapshot: Path) -> None:
    summary = summarize(snapshot, None)

    assert summary["problems"] == []
    assert summary["files"] == 2
    assert summary["tensors"] == {"BF16": 48}
    assert summary["bytes"] == sum(path.stat().st_size for path in snapshot.glob("*.safetensors"))
    assert summary["config"]["quantization_config"] == {"quant_method": "modelopt"}
    assert "id2label" not in summary["config"]
    checkpoint = from_summary(json.loads(json.dumps(summary)))
    assert len(checkpoint.layers) == 2
    assert checkpoint.size == 48


def test_without_an_index_every_shard_counts_and_the_other_form_does_not(snapshot: Path) -> None:
    (snapshot / INDEX).unlink()
    (snapshot / "consolidated.safetensors").write_bytes(serialize([tensor("a", 3, 4)]))

    summary = summarize(snapshot, None)

    assert summary["problems"] == []
    assert summary["tensors"] == {"BF16": 48}


def first(snapshot: Path) -> Path:
    return snapshot / "model-00001-of-00002.safetensors"


def header(path: Path) -> tuple[dict[str, Any], bytes]:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def write(path: Path, entries: Mapping[str, Any] | str, data: bytes) -> None:
    text = (entries if isinstance(entries, str) else json.dumps(entries)).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def cut(snapshot: Path) -> None:
    first(snapshot).write_bytes(first(snapshot).read_bytes()[:-1])


def lengthened(snapshot: Path) -> None:
    first(snapshot).write_bytes(first(snapshot).read_bytes() + b"x")


def empty(snapshot: Path) -> None:
    first(snapshot).write_bytes(b"")


def error_page(snapshot: Path) -> None:
    first(snapshot).write_text("<!DOCTYPE html><html><body>404 not found</body></html>")


def no_json(snapshot: Path) -> None:
    write(first(snapshot), "{broken", b"")


def wrong_size(snapshot: Path) -> None:
    entries, data = header(first(snapshot))
    entries["a"]["shape"] = [3, 5]
    write(first(snapshot), entries, data)


def gap(snapshot: Path) -> None:
    entries, data = header(first(snapshot))
    entries["b"]["data_offsets"] = [26, 36]
    write(first(snapshot), entries, data + b"xx")


def overlap(snapshot: Path) -> None:
    entries, data = header(first(snapshot))
    entries["b"]["data_offsets"] = [22, 32]
    write(first(snapshot), entries, data)


def twice_in_a_header(snapshot: Path) -> None:
    entry = '{"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}'
    write(first(snapshot), f'{{"a": {entry}, "a": {entry}}}', b"xx")


def not_understood(snapshot: Path) -> None:
    write(first(snapshot), {"a": {"dtype": "BF16"}}, b"")


def missing_shard(snapshot: Path) -> None:
    first(snapshot).unlink()


def in_the_wrong_shard(snapshot: Path) -> None:
    index = json.loads((snapshot / INDEX).read_text())
    index["weight_map"]["b"] = "model-00002-of-00002.safetensors"
    (snapshot / INDEX).write_text(json.dumps(index))


def not_in_the_index(snapshot: Path) -> None:
    index = json.loads((snapshot / INDEX).read_text())
    del index["weight_map"]["b"]
    (snapshot / INDEX).write_text(json.dumps(index))


def in_two_shards(snapshot: Path) -> None:
    path = snapshot / "model-00002-of-00002.safetensors"
    path.write_bytes(serialize([tensor("c", 7), tensor("b", 5)]))


def broken_index(snapshot: Path) -> None:
    (snapshot / INDEX).write_text('{"weight_map": ')


def broken_config(snapshot: Path) -> None:
    (snapshot / "config.json").write_text("<html>")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, "model-00001-of-00002.safetensors: cut off: "),
        (lengthened, "too long"),
        (empty, "cut off: 0 bytes"),
        (error_page, "no safetensors file"),
        (no_json, "no JSON"),
        (wrong_size, "a of BF16 [3, 5] has 24 bytes, not 30"),
        (gap, "b begins at byte 26, the one before it ends at 24"),
        (overlap, "b begins at byte 22, the one before it ends at 24"),
        (twice_in_a_header, "names a tensor twice"),
        (not_understood, "entry of a is not understood"),
        (missing_shard, "model-00001-of-00002.safetensors: No such file"),
        (in_the_wrong_shard, "b: not in model-00002-of-00002.safetensors, where the index has it"),
        (not_in_the_index, "b: in model-00001-of-00002.safetensors, but not in the index"),
        (in_two_shards, "b: in model-00001-of-00002.safetensors and model-00002-of-00002.safetensors"),
        (broken_index, "no `weight_map`"),
        (broken_config, "config.json: "),
    ],
)
def test_damage_is_said(snapshot: Path, damage: Callable[[Path], None], said: str) -> None:
    damage(snapshot)

    problems = summarize(snapshot, None)["problems"]

    assert any(said in problem for problem in problems), problems


def test_an_empty_directory_is_a_problem(tmp_path: Path) -> None:
    summary = summarize(tmp_path, None)

    assert summary["problems"] == [f"{tmp_path}: no .safetensors file"]
    assert summary["config"] is None


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(tensors: list[tuple[str, int, int, int]], data: int, pairs: bytes = b"", count: int = 0) -> bytes:
    """`tensors`: name, values, type, offset."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), count) + pairs
    for name, values, kind, offset in tensors:
        head += text(name) + struct.pack("<IQIQ", 1, values, kind, offset)
    return head + bytes(-len(head) % 32) + bytes(data)


METADATA = (
    text("general.architecture") + struct.pack("<I", 8) + text("gpt-oss")
    + text("gpt-oss.block_count") + struct.pack("<II", 4, 36)
    + text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
    + text("gpt-oss.pattern") + struct.pack("<IIQ???", 9, 7, 3, True, False, True)
)  # fmt: skip


def test_a_gguf_file_tells_its_metadata_and_types(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(gguf([("x", 64, 39, 0), ("y", 8, 0, 64)], 96, METADATA, 4))

    summary = summarize(tmp_path, "m.gguf")

    assert summary["problems"] == []
    assert summary["tensors"] == {"MXFP4": 34, "F32": 32}
    assert summary["config"] == {
        "general.architecture": "gpt-oss",
        "gpt-oss.block_count": 36,
        "gpt-oss.pattern": [True, False, True],
    }


def test_the_parts_of_a_gguf_are_one(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"m-0000{number}-of-00002.gguf").write_bytes(gguf([("x", 64, 39, 0)], 64, METADATA, 4))

    summary = summarize(tmp_path, "m-00001-of-00002.gguf")

    assert summary["files"] == 2
    assert summary["tensors"] == {"MXFP4": 68}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gguf([("x", 64, 39, 0)], 20), "x ends at byte"),
        (gguf([("x", 64, 39, 0)], 64)[:40], "cut off"),
        (b"<html>404</html>", "no magic"),
        (b"", "no magic"),
    ],
)
def test_a_damaged_gguf_is_said(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "m.gguf").write_bytes(content)

    problems = summarize(tmp_path, "m.gguf")["problems"]

    assert len(problems) == 1
    assert said in problems[0]


def test_a_missing_part_is_said(tmp_path: Path) -> None:
    (tmp_path / "m-00001-of-00002.gguf").write_bytes(gguf([("x", 64, 39, 0)], 64))

    problems = summarize(tmp_path, "m-00001-of-00002.gguf")["problems"]

    assert problems == ["m-00002-of-00002.gguf: No such file or directory"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, "model-00001-of-00002.safetensors: cut off: "),
        (error_page, "no safetensors file"),
        (gap, "b begins at byte 26, the one before it ends at 24"),
        (missing_shard, "model-00001-of-00002.safetensors: not here, and the index names it"),
        (in_the_wrong_shard, "b: not in model-00002-of-00002.safetensors, where the index has it"),
        (in_two_shards, "b: in model-00001-of-00002.safetensors and model-00002-of-00002.safetensors"),
        (broken_index, "no `weight_map`"),
        (not_in_the_index, None),
        (broken_config, None),
    ],
)
def test_only_what_no_engine_can_load_is_a_fault_of_the_structure(
    snapshot: Path, damage: Callable[[Path], None], said: str | None
) -> None:
    assert structure(snapshot) == []

    damage(snapshot)

    found = structure(snapshot)
    assert len(found) == (0 if said is None else 1), found
    assert said is None or said in found[0]


def test_a_model_of_other_files_has_no_such_structure(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")

    assert structure(tmp_path) == []
