"""The header of a .safetensors file, checked against the file's size: which tensors it holds, and where.

The format: 8 bytes that give the header's length, the header as JSON, and the tensors without a gap.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

_LONGEST = 100_000_000  # what the safetensors library accepts
_LENGTH = 8
_BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F4": 4,
    "U16": 16,
    "I16": 16,
    "F16": 16,
    "BF16": 16,
    "U32": 32,
    "I32": 32,
    "F32": 32,
    "U64": 64,
    "I64": 64,
    "F64": 64,
    "C64": 64,
}


class HeaderError(Exception):
    """The file is not what a .safetensors file is; the text says how."""


@dataclass(frozen=True)
class Tensor:
    """`start` and `end`: bytes after the header."""

    name: str
    dtype: str
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start


def read_header(path: Path) -> list[Tensor]:
    """The tensors in the order in which they lie. Raises `HeaderError`, and `OSError` where it can not be read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(_LENGTH)
        if len(start) < _LENGTH:
            raise HeaderError(f"cut off: {size} bytes")
        (length,) = struct.unpack("<Q", start)
        if length > min(_LONGEST, size - _LENGTH):
            raise HeaderError(f"cut off, or no safetensors file: a header of {length} bytes in a file of {size}")
        header = _parsed(file.read(length))
    tensors = sorted((_tensor(name, entry) for name, entry in header.items()), key=lambda tensor: tensor.start)
    end = 0
    for tensor in tensors:
        if tensor.start != end:
            raise HeaderError(f"{tensor.name} begins at byte {tensor.start}, the one before it ends at {end}")
        end = tensor.end
    wanted = _LENGTH + length + end
    if wanted != size:
        raise HeaderError(f"{'cut off' if size < wanted else 'too long'}: {size} bytes, its header speaks of {wanted}")
    return tensors


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text, object_pairs_hook=_without_doubles)
    except ValueError as error:
        raise HeaderError(f"its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise HeaderError("its header is no JSON object")
    header.pop("__metadata__", None)
    return header


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise HeaderError("its header names a tensor twice")
    return found


def _tensor(name: str, entry: Any) -> Tensor:
    try:
        dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        tensor = Tensor(name, str(dtype), int(start), int(end))
        bits = _BITS.get(tensor.dtype)
        wanted = None if bits is None else (prod(int(length) for length in shape) * bits + 7) // 8
    except (KeyError, TypeError, ValueError):
        raise HeaderError(f"its header's entry of {name} is not understood") from None
    if not 0 <= tensor.start <= tensor.end or wanted not in {None, tensor.size}:
        raise HeaderError(f"{name} of {tensor.dtype} {list(shape)} has {tensor.size} bytes, not {wanted}")
    return tensor
