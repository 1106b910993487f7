"""`lscpu`; a GB10 has two kinds of cores and prints two `Model name` blocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import integer, lines_of, number

_PROGRAM = "lscpu"


@dataclass(frozen=True)
class CpuModel:
    """One kind of core. Clocks in MHz. `scaling_pct` may be above 100."""

    name: str
    cores_per_socket: int | None = None
    sockets: int | None = None
    max_mhz: float | None = None
    min_mhz: float | None = None
    scaling_pct: float | None = None


@dataclass(frozen=True)
class Lscpu:
    """`cpus`: logical ones."""

    architecture: str
    cpus: int
    models: tuple[CpuModel, ...] = field(default=())


def parse_lscpu(text: str) -> Lscpu:
    """Architecture, number of CPUs and every model block, in the order printed."""
    architecture: str | None = None
    cpus: int | None = None
    models: list[CpuModel] = []
    for at, line in enumerate(lines_of(text), start=1):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        if key == "Architecture":
            architecture = value
        elif key == "CPU(s)":
            cpus = integer(_PROGRAM, value, line=at)
        elif key == "Model name":
            models.append(CpuModel(value))
        elif models:
            models[-1] = _with(models[-1], key, value, at)
    if architecture is None or cpus is None or not models:
        raise ParseError(_PROGRAM, "no Architecture, CPU(s) or Model name", text=text)
    return Lscpu(architecture, cpus, tuple(models))


def _with(model: CpuModel, key: str, value: str, at: int) -> CpuModel:
    if key in {"Core(s) per socket", "Core(s) per cluster"}:
        return replace(model, cores_per_socket=integer(_PROGRAM, value, line=at))
    if key == "Socket(s)" and value != "-":
        return replace(model, sockets=integer(_PROGRAM, value, line=at))
    if key == "CPU max MHz":
        return replace(model, max_mhz=number(_PROGRAM, value, line=at))
    if key == "CPU min MHz":
        return replace(model, min_mhz=number(_PROGRAM, value, line=at))
    if key == "CPU(s) scaling MHz":
        return replace(model, scaling_pct=number(_PROGRAM, value.removesuffix("%"), line=at))
    return model
