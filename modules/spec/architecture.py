"""Spellings of the GPU architecture that a build is for."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

# Compiled with nvcc 13.0.88: plain 12.x lacks every native FP4 instruction; 12.1a and 12.1f accept the same set.
ARCHITECTURES = ("12.0", "12.0a", "12.0f", "12.1", "12.1a", "12.1f")
_ACCEPTED = ("12.1f", "12.1a")


def _accepted(value: str) -> str:
    if value in _ACCEPTED:
        return value
    if value in {"12.1", "12.0"}:
        raise ValueError(
            f"plain {value} has none of the native FP4 instructions (no e2m1 conversion, no block-scaled MMA): "
            "use 12.1f (or 12.1a)"
        )
    if value in ARCHITECTURES:
        raise ValueError(f"{value} is not the GB10's architecture: use 12.1f (or 12.1a)")
    raise ValueError(f"unknown architecture {value!r}: use 12.1f (or 12.1a)")


Architecture = Annotated[str, AfterValidator(_accepted), WithJsonSchema({"enum": list(_ACCEPTED)})]
