"""Sizes of data types, and bytes as people read them."""

from __future__ import annotations

GIB = 1 << 30
MIB = 1 << 20

_KV_BITS = {
    "auto": 16.0,
    "half": 16.0,
    "float16": 16.0,
    "bfloat16": 16.0,
    "f16": 16.0,
    "bf16": 16.0,
    "float32": 32.0,
    "f32": 32.0,
    "fp8": 8.0,
    "fp8_e4m3": 8.0,
    "fp8_e5m2": 8.0,
    "fp8_inc": 8.0,
    # A 4-bit value and an 8-bit scale for every 16 of them.
    "nvfp4": 4.5,
    "fp4_e2m1": 4.5,
    # llama.cpp's blocks of 32 values carry a 16-bit scale, the _1 ones a 16-bit minimum as well.
    "q8_0": 8.5,
    "q5_1": 6.0,
    "q5_0": 5.5,
    "q4_1": 5.0,
    "q4_0": 4.5,
    "iq4_nl": 4.5,
}


def kv_bits(dtype: str) -> float | None:
    """Bits of one cached value under a `kv-cache-dtype` (or llama.cpp `cache-type`); None: unknown to us.

    `auto` is the model's own type, which for every model of this decade has 16 bits.
    """
    return _KV_BITS.get(dtype.lower())


def gib(size: float) -> str:
    """Bytes in GiB, in the form of the engines' own logs."""
    return f"{size / GIB:.2f} GiB"
