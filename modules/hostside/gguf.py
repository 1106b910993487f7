"""The header of a GGUF file, checked against the file's size: its metadata, and its tensors' bytes by type.

The format: magic, version, counts, typed key-value pairs, a description of each tensor, then their data, aligned.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = 32
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf$")
# Values in a block, and its bytes: ggml.h.
_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    39: ("MXFP4", 32, 17),
}


class _NotGgufError(Exception):
    pass


def read_gguf(path: Path) -> dict[str, Any]:
    """What `checkpoint.py` prints of a file and its further parts."""
    tensors: Counter[str] = Counter()
    metadata: dict[str, Any] | None = None
    problems: list[str] = []
    size = 0
    files = list(parts(path))
    for part in files:
        try:
            found, own = _read(part)
            size += part.stat().st_size
        except OSError as error:
            problems.append(f"{part.name}: {error.strerror}")
        except (_NotGgufError, struct.error, UnicodeDecodeError) as error:
            problems.append(f"{part.name}: cut off, or no GGUF file ({error})")
        else:
            metadata = found if metadata is None else metadata
            tensors.update(own)
    return {"files": len(files), "bytes": size, "tensors": dict(tensors), "config": metadata, "problems": problems}


def parts(path: Path) -> Iterator[Path]:
    """The file, with all further ones where its name says that it is the first of several."""
    split = _PART.fullmatch(path.name)
    if split is None:
        yield path
        return
    for number in range(1, int(split[3]) + 1):
        yield path.with_name(f"{split[1]}-{number:05}-of-{split[3]}.gguf")


def _read(path: Path) -> tuple[dict[str, Any], Counter[str]]:
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise _NotGgufError("no magic")
        (version,) = _unpacked(file, "I")
        if version not in _VERSIONS:
            raise _NotGgufError(f"version {version}")
        count, pairs = _unpacked(file, "QQ")
        metadata = {}
        for _ in range(pairs):
            key = _string(file)
            value = _value(file, *_unpacked(file, "I"))
            if value is not None:
                metadata[key] = value
        described = [_described(file) for _ in range(count)]
        alignment = int(metadata.get("general.alignment", _ALIGNMENT))
        start = -(-file.tell() // alignment) * alignment
    size = path.stat().st_size
    tensors: Counter[str] = Counter()
    for name, kind, bytes_, offset in described:
        if start + offset + bytes_ > size:
            raise _NotGgufError(f"{name} ends at byte {start + offset + bytes_} of {size}")
        tensors[kind] += bytes_
    return metadata, tensors


def _described(file: BinaryIO) -> tuple[str, str, int, int]:
    name = _string(file)
    (dimensions,) = _unpacked(file, "I")
    shape = _unpacked(file, "Q" * dimensions)
    number, offset = _unpacked(file, "IQ")
    # Of a type that is not in the table at least its place is checked.
    kind, values, bytes_ = _TYPES.get(number, (f"type {number}", 1, 0))
    return name, kind, prod(shape) // values * bytes_, offset


def _value(file: BinaryIO, kind: int) -> Any:
    """A value that is worth to be kept; None of a list of texts, which is the vocabulary."""
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _unpacked(file, _scalar(kind))[0]
    (item, count) = _unpacked(file, "IQ")
    if item == _STRING:
        for _ in range(count):
            _string(file)
        return None
    values = _unpacked(file, f"{count}{_scalar(item)}")
    return list(values) if count <= 1024 else None


def _scalar(kind: int) -> str:
    try:
        return _SCALARS[kind]
    except KeyError:
        raise _NotGgufError(f"a value of kind {kind}") from None


def _string(file: BinaryIO) -> str:
    (length,) = _unpacked(file, "Q")
    if length > 1 << 24:
        raise _NotGgufError(f"a text of {length} bytes")
    return file.read(length).decode("utf-8", errors="replace")


def _unpacked(file: BinaryIO, form: str) -> tuple[Any, ...]:
    form = f"<{form}"
    return struct.unpack(form, file.read(struct.calcsize(form)))
