"""Weight files that are what they should be, and no larger than a test needs."""

from __future__ import annotations

import json
import struct


def shard(size: int, filling: bytes, tensor: str = "") -> bytes:
    """A .safetensors file of exactly `size` bytes with one tensor, which holds `filling` again and again."""
    room = 120
    data = (filling * (size // len(filling) + 1))[: size - room]
    name = tensor or f"of.{filling[:8].hex()}"
    entry = {name: {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}
    header = json.dumps(entry).encode().ljust(room - 8)
    return struct.pack("<Q", len(header)) + header + data
