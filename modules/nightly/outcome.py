"""What came of a night. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Of `python -m modules.converge --drift`.
_DRIFT = {0: "none", 2: "found", 3: "unknown"}


@dataclass(frozen=True)
class Night:
    """`started`, `ended`: seconds of the epoch. `drift`: the document of `--drift --json`; None: there was none.

    `drift_status`, `gate_status`: of the two programs; `gate_status` None: no gate was asked for.
    """

    fleet: str
    started: float
    ended: float
    drift_status: int
    gate_status: int | None
    drift: Mapping[str, Any] | None

    @property
    def status(self) -> int:
        """0 where all is as it should be; systemd shows the unit as failed otherwise."""
        return self.drift_status or self.gate_status or 0

    def hosts(self, state: str) -> list[str]:
        """The hosts that were found to be in this state: same, differs, refused or unknown."""
        found = (self.drift or {}).get("hosts", {})
        return sorted(name for name, host in found.items() if host["state"] == state)

    def document(self) -> dict[str, Any]:
        """What stands in `last.json`."""
        return {
            "fleet": self.fleet,
            "started": round(self.started),
            "ended": round(self.ended),
            "status": self.status,
            "drift": {
                "status": self.drift_status,
                "verdict": _DRIFT.get(self.drift_status, "failed"),
                "differs": self.hosts("differs"),
                "refused": self.hosts("refused"),
                "unknown": self.hosts("unknown"),
            },
            "gate": {"status": self.gate_status},
        }

    def metrics(self) -> str:
        """For node exporter's textfile collector. Without a drift document no figure of hosts is given: not 0."""
        label = f'{{fleet="{self.fleet}"}}'
        figures: list[tuple[str, str, float | int | None]] = [
            ("nightly_last_run_timestamp_seconds", "When the last nightly check ended", round(self.ended)),
            ("nightly_last_run_status", "What it ended with; 0: all is as it should be", self.status),
            ("drift_hosts", "Hosts that differ from the fleet file, or can not be brought to it", self._count(
                "differs", "refused")),
            ("drift_unknown_hosts", "Hosts that could not be looked at", self._count("unknown")),
            ("nightly_gate_status", "What the nightly gate ended with", self.gate_status),
        ]  # fmt: skip
        return "".join(
            f"# HELP tinderbox_{name} {told}.\n# TYPE tinderbox_{name} gauge\ntinderbox_{name}{label} {value}\n"
            for name, told, value in figures
            if value is not None
        )

    def _count(self, *states: str) -> int | None:
        return None if self.drift is None else sum(len(self.hosts(state)) for state in states)

    def line(self) -> str:
        """For the journal."""
        gate = "not asked for" if self.gate_status is None else "passed" if self.gate_status == 0 else "FAILED"
        states = [state for state in ("differs", "refused", "unknown") if self.hosts(state)]
        named = "; ".join(f"{state}: {', '.join(self.hosts(state))}" for state in states)
        verdict = _DRIFT.get(self.drift_status, "could not be looked for")
        return f"fleet {self.fleet}: drift {verdict}{f' ({named})' if named else ''}, gate {gate}"
