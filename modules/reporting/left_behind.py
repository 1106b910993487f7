"""What goes on on hosts after an interrupted run, as pyinfra's process hands it to whoever started that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Names the file.
LEFT_FILE = "TINDERBOX_LEFT"


@dataclass(frozen=True)
class Left:
    """Host → units and programs that go on there. `settled`: the hosts have said so; else it was begun."""

    settled: bool = True
    by_host: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def text(self) -> str:
        """For the operator who has left."""
        if not self.by_host:
            return "interrupted; nothing that it began goes on on any host"
        told = "; ".join(f"{host}: {', '.join(names)}" for host, names in sorted(self.by_host.items()))
        if not self.settled:
            return (
                f"interrupted before the hosts could say what goes on; perhaps these do, and the next run picks them "
                f"up: {told}"
            )
        return f"interrupted; these go on unattended, and the next run picks them up: {told}"


def note_left(path: Path, left: Left) -> None:
    """Write it down, whole or not at all."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({"settled": left.settled, "by_host": left.by_host}), encoding="utf-8")
    beside.replace(path)


def read_left(path: Path) -> Left:
    """What was written down; nothing where nothing was."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Left(bool(found["settled"]), {str(host): list(names) for host, names in found["by_host"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Left()
