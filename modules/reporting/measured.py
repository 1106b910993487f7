"""What was measured on the fleet's hosts, kept on the controller: `.tinderbox/<fleet>/measured.json`."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from modules.facts.parse.llama_benchy import Metric
from modules.gating import Verdict, thresholds_id
from modules.spec.gate import Gate

ROOT = Path(__file__).parents[2] / ".tinderbox"


class Figure(BaseModel):
    """Mean and standard deviation over the runs, and the runs' own values; tokens/s or ms, by the metric's name."""

    model_config = ConfigDict(frozen=True)

    mean: float
    std: float
    values: tuple[float, ...]


class MeasuredService(BaseModel):
    """One service on one host, as last read there. `measured`: when, UTC. `reasons`: lines of what is no plain pass.

    `client`: where it was measured from, `host` or `controller`. `judged_by`: the thresholds of that gate, by their id;
    empty where it was not noted.
    """

    model_config = ConfigDict(frozen=True)

    host: str
    service: str
    engine: str
    profile: str
    model: str
    port: int
    gpu: str | None
    release: str
    verdict: Verdict
    measured: str
    metrics: dict[str, Figure]
    reasons: list[str]
    client: str = "host"
    judged_by: str = ""

    def outdated(self, gate: Gate) -> bool:
        """Whether the verdict is of other bounds than the gate has now."""
        return self.judged_by not in {"", thresholds_id(gate)}


class Measured(BaseModel):
    """Everything measured of a fleet, by `host/service`."""

    services: dict[str, MeasuredService] = {}


def figure_of(metric: Metric) -> Figure:
    """The same, as it is kept."""
    return Figure(mean=metric.mean, std=metric.std, values=metric.values)


def measured_file(fleet: str, root: Path = ROOT) -> Path:
    """Where a fleet's results lie."""
    return root / fleet / "measured.json"


def load_measured(fleet: str, root: Path = ROOT) -> Measured:
    """What is kept of a fleet: nothing where nothing was measured yet, or the file is broken (hosts know it all)."""
    try:
        return Measured.model_validate_json(measured_file(fleet, root).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValidationError):
        return Measured()


def remember(fleet: str, service: MeasuredService, root: Path = ROOT) -> None:
    """Keep one service's result in place of its former one."""
    kept = load_measured(fleet, root)
    key = f"{service.host}/{service.service}"
    if kept.services.get(key) != service:
        _write(Measured(services={**kept.services, key: service}), measured_file(fleet, root))


def forget(fleet: str, host: str, service: str, root: Path = ROOT) -> None:
    """Keep nothing more of a service that was taken off its host."""
    kept = load_measured(fleet, root)
    rest = {key: one for key, one in kept.services.items() if key != f"{host}/{service}"}
    if rest != kept.services:
        _write(Measured(services=rest), measured_file(fleet, root))


def _write(measured: Measured, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Hosts are handled by one thread, so nobody else writes between the reading above and this.
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(measured.model_dump_json(indent=1) + "\n", encoding="utf-8")
    beside.replace(path)
