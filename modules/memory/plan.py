"""The memory plan of a service: what it will take, part by part, against what the machine has."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from modules.memory.cache import Capacity
from modules.memory.sizes import GIB

# GB10 does not kill what takes too much, it wedges. About 8 GiB were left in a published run that lasted (baseline C).
SYSTEM_RESERVE = 8 * GIB
# A lab host is a container with nothing but the engine in it.
LAB_RESERVE = 1 * GIB

NEIGHBOURS, RESERVE = "other services", "system reserve"

Source = Literal["read", "measured", "set", "estimated", "remainder", "unknown"]
ProblemKind = Literal["machine", "no cache", "context"]


@dataclass(frozen=True)
class Machine:
    """In bytes. `memory`: MemTotal; `neighbours`: what other services of the host claim; `reserve`: the system's."""

    memory: int
    neighbours: int = 0
    reserve: int = SYSTEM_RESERVE


@dataclass(frozen=True)
class Measured:
    """Bytes that an earlier start of the same release logged; None: not known."""

    weights: int | None = None
    graphs: int | None = None
    workspace: int | None = None


@dataclass(frozen=True)
class Part:
    """`source`: `read` from the checkpoint, `set` by a flag, what a fraction leaves (`remainder`), or less certain."""

    name: str
    size: int
    source: Source
    note: str = ""


@dataclass(frozen=True)
class Problem:
    """Why the plan can not be: too small a machine, nothing left for a cache, or one in which not one sequence fits."""

    kind: ProblemKind
    text: str


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes throughout.

    `weights`, `cache`, `graphs` are the engine's own breakdown (`serving` is their sum); `others` what comes on top of
    it. `capacity`: None where the layers are unknown. `start_needs`: MemAvailable without which a start would fail.
    """

    weights: Part
    cache: Part
    graphs: Part
    others: tuple[Part, ...]
    memory: int
    context: int
    capacity: Capacity | None
    start_needs: int
    problems: tuple[Problem, ...]
    remarks: tuple[str, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, the largest claims of the engine first."""
        return (self.weights, self.cache, self.graphs, *self.others)

    @property
    def serving(self) -> int:
        """Weights, cache and graphs."""
        return self.weights.size + self.cache.size + self.graphs.size

    @property
    def total(self) -> int:
        """All parts together."""
        return sum(part.size for part in self.parts)

    @property
    def claim(self) -> int:
        """What the service takes of the machine: what its neighbours have to reckon with."""
        return sum(part.size for part in self.parts if part.name not in {NEIGHBOURS, RESERVE})

    @property
    def left(self) -> int:
        """What the machine has beyond the plan; negative where it has less."""
        return self.memory - self.total

    @property
    def fits(self) -> bool:
        """Whether the service can start and live so."""
        return not self.problems

    def document(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return asdict(self) | {
            "serving": self.serving,
            "total": self.total,
            "left": self.left,
            "fits": self.fits,
        }
