"""What a host has told of one service → its state. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modules.facts.service import UnitState
from modules.fleet import ServicePlan
from modules.memory.plan import NEIGHBOURS, RESERVE
from modules.reporting.states import state_of
from modules.status.gate import gate_status
from modules.status.rates import rates
from modules.status.report import ServiceStatus, Watchdog
from modules.status.strangers import memory_by_place
from modules.status.times import utc

Document = Mapping[str, Any]
_DOING = {"activating": "starting", "deactivating": "stopping", "reloading": "reloading"}
_ENTERED = {
    "active": "ActiveEnterTimestamp",
    "activating": "InactiveExitTimestamp",
    "inactive": "InactiveEnterTimestamp",
}
# Of a release's story: what tells why it does not serve.
_FAILURES = {"failed to start", "gate failed", "withdrawn"}


def service_status(name: str, plan: ServicePlan | None, told: Document) -> ServiceStatus:
    """`plan`: the fleet file's; None: it is left over from an older one. `told`: all that the host told."""
    found: Document = told["services"][name]
    units: Mapping[str, Mapping[str, str]] | None = told.get("units")
    unit = (units or {}).get(f"tinderbox-{name}.service", {})
    state = UnitState.of(dict(unit))
    known = units is not None and bool(unit)
    entered = _entered(unit, state) if known else None
    now = float(told["at"])
    running = _container(name, told)
    return ServiceStatus(
        name=name,
        wanted=plan is not None,
        deployed=_deployed(found, unit, known=known),
        state=state_of(state),
        doing="starting again" if state.sub == "auto-restart" else _DOING.get(state.active),
        since=None if entered is None else utc(entered),
        for_s=None if entered is None else max(0.0, round(now - entered, 1)),
        release=(running or {}).get("release") or found.get("current"),
        standing=found.get("standing"),
        port=None if plan is None or plan.is_worker else plan.service.port,
        worker_of=plan.cluster.head if plan is not None and plan.is_worker and plan.cluster is not None else None,
        claim=_claim(found),
        used=_used(name, running, told),
        gate=gate_status((found.get("gate") or {}).get("current")),
        gate_of_another=gate_status((found.get("gate") or {}).get("later")),
        watchdog=_watchdog(found, (units or {}).get(f"tinderbox-watch@{name}.service"), now),
        closed=bool(found.get("closed")),
        why=_why(found, unit, state),
        **rates(found.get("samples") or ()),
    )


def _deployed(found: Document, unit: Mapping[str, str], *, known: bool) -> bool | None:
    if found.get("in_ledger") or unit.get("LoadState") == "loaded":
        return True
    return False if known and unit.get("LoadState") == "not-found" else None


def _entered(unit: Mapping[str, str], state: UnitState) -> float | None:
    """When it came into its state, seconds of the epoch; None where it was in no other since the boot."""
    stamp = unit.get(_ENTERED.get(state.active, "StateChangeTimestamp"), "").removeprefix("@")
    return float(stamp) if stamp.isdigit() and int(stamp) > 0 else None


def _container(name: str, told: Document) -> dict[str, Any] | None:
    found = told.get("containers") or ()
    return next((one for one in found if name in {one["service"], one["name"].removeprefix("tinderbox-")}), None)


def _claim(found: Document) -> int | None:
    """What the memory plan of its release takes of the machine, but for its neighbours and the system's reserve."""
    parts: Mapping[str, int] | None = found.get("plan")
    if parts:
        return sum(size for part, size in parts.items() if part not in {NEIGHBOURS, RESERVE})
    needs = found.get("needs")
    return needs if isinstance(needs, int) and needs > 0 else None


def _used(name: str, running: Document | None, told: Document) -> int | None:
    """What its processes have for themselves, and what they have on the GPU; None where that can not be seen.

    The kernel does not count a GB10's GPU memory with the processes that have it, so both are added.
    """
    memory: Mapping[str, int] = told.get("memory") or {}
    place = running["id"] if running is not None else f"tinderbox-{name}.service"
    if place not in memory:
        return None
    return memory[place] + memory_by_place(told).get(place, 0)


def _watchdog(found: Document, unit: Mapping[str, str] | None, now: float) -> Watchdog | None:
    """None where the service has none that is known of."""
    noted, restart = found.get("watched"), found.get("watchdog")
    loaded = unit is not None and unit.get("LoadState") == "loaded"
    if not loaded and noted is None and restart is None:
        return None
    at = (noted or {}).get("at")
    return Watchdog(
        active=None if unit is None else unit.get("ActiveState") == "active",
        generated_s=None if at is None else max(0.0, round(now - float(at), 1)),
        misses=(noted or {}).get("misses"),
        word=(restart or {}).get("note"),
        word_at=(restart or {}).get("at"),
    )


def _why(found: Document, unit: Mapping[str, str], state: UnitState) -> str | None:
    """Why it does not serve, as the ledger has it, else as systemd does."""
    if state_of(state) != "failed":
        return None
    event = found.get("last_event") or {}
    if event.get("event") in _FAILURES:
        return f"{event['event']} at {event['at']}{f': {note}' if (note := event.get('note')) else ''}"
    result = unit.get("Result", "unknown")
    status = f", exit status {code}" if (code := unit.get("ExecMainStatus", "0")) not in {"0", ""} else ""
    return f"systemd: {result}{status}, after {unit.get('NRestarts') or 0} restarts"
