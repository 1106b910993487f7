"""A removal in words: what goes, with how much of the disk that frees, what stays and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from modules.reporting.progress import size


@dataclass(frozen=True)
class Removal:
    """What `remove_layers.py plan` says (modules/hostside/removal.py)."""

    going: tuple[dict[str, Any], ...]
    staying: tuple[dict[str, Any], ...]
    refused: str | None

    @classmethod
    def of(cls, document: dict[str, Any]) -> Removal:
        """From its JSON. Raises `KeyError`, `TypeError`: it is not what it should be."""
        return cls(tuple(document["going"]), tuple(document["staying"]), document["refused"])

    @property
    def bytes(self) -> int:
        """What the disk gains, as far as that is known; what lies in a folder that goes, too, counts once."""
        return sum(one["bytes"] or 0 for one in self.going)


def removal_lines(found: Removal) -> Iterator[str]:
    """Layer by layer, a line each."""
    for layer in dict.fromkeys(one["layer"] for one in (*found.going, *found.staying)):
        going = [one for one in found.going if one["layer"] == layer]
        freed = sum(one["bytes"] or 0 for one in going)
        yield f"layer {layer}: {len(going)} to go" + (f", {size(freed)}" if freed else "")
        for one in going:
            told = f" ({size(one['bytes'])})" if one["bytes"] else ""
            yield f"    goes   {one['title']}{told}" + (f": {one['note']}" if one["note"] else "")
        for one in found.staying:
            if one["layer"] == layer:
                yield f"    stays  {one['title']}: {one['why']}"
