"""Services, their releases and their gates, for Prometheus: from systemd, the ledger, and what gates have kept.

A state that can not be learned is `unknown`, and whether the service is ready is then absent.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import release_story as story
    from modules.hostside.atomic import read_json
    from modules.hostside.exposition import COUNTER, Family
    from modules.hostside.ledger import STATE, Ledger
    from modules.hostside.load_stops import load_stops
    from modules.hostside.service_unit import run, unit_name
else:
    import release_story as story
    from atomic import read_json
    from exposition import COUNTER, Family
    from ledger import STATE, Ledger
    from load_stops import load_stops
    from service_unit import run, unit_name

STATES = ("running", "failed", "stopped", "unknown")
VERDICTS = ("PASS", "WARN", "FAIL", "MISSING")
_PROPERTIES = "Id,LoadState,ActiveState,SubState,NRestarts,ActiveEnterTimestamp"
_FORM = "%Y-%m-%dT%H:%M:%SZ"
_WATCHDOG = "watchdog"
Units = Mapping[str, Mapping[str, str]]


def units(names: list[str], ask: Callable[..., str | None] = run) -> Units | None:
    """Unit → its properties, all in one question; None where systemd gives no answer."""
    if not names:
        return {}
    shown = ask("systemctl", "show", "--timestamp=unix", f"--property={_PROPERTIES}", *names)
    if shown is None:
        return None
    blocks = (dict(line.partition("=")[::2] for line in block.splitlines()) for block in shown.split("\n\n"))
    return {block["Id"]: block for block in blocks if "Id" in block}


def state_of(unit: Mapping[str, str]) -> str:
    """One of the four words. A unit on its way, or of a crash loop, does not serve yet."""
    active, sub = unit.get("ActiveState"), unit.get("SubState")
    if sub == "auto-restart" or active == "failed":
        return "failed"
    if active in {"active", "reloading"}:
        return "running"
    return "stopped" if active in {"inactive", "activating", "deactivating", "maintenance"} else "unknown"


class Services:
    """Tells of services. Ledger entries are read again only when they change: a host may have hundreds."""

    def __init__(self, root: Path = STATE, ask: Callable[..., str | None] = run) -> None:
        self._root, self._ask = root, ask
        self._entries: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}

    def families(self, services: Mapping[str, Mapping[str, Any]]) -> list[Family]:
        """`services`: name → what the fleet file says of it (`gate`: whether it has one, `bounds`, `units`)."""
        shown = units([unit_name(name) for name in services], self._ask)
        up = Family("tinderbox_source_up", "1 where what is told here could be read from this source.")
        up.add(float(shown is not None), source="systemd")
        told = [up]
        for name, wish in services.items():
            told += self._unit(name, (shown or {}).get(unit_name(name), {}))
            told += self._releases(name)
            told += self._gate(name, wish) if wish.get("gate") else []
        return told

    def _unit(self, name: str, unit: Mapping[str, str]) -> list[Family]:
        state = state_of(unit)
        states = Family("tinderbox_service_state", "1 for the state that a service is in.")
        for one in STATES:
            states.add(float(one == state), service=name, state=one)
        ready = Family("tinderbox_service_ready", "1 where the service has generated text since its start, and runs.")
        ready.add(None if state == "unknown" else float(unit.get("ActiveState") == "active"), service=name)
        since = Family("tinderbox_service_ready_timestamp_seconds", "When the service was last found ready.")
        entered = unit.get("ActiveEnterTimestamp", "").removeprefix("@")
        since.add(float(entered) if entered.isdigit() and state == "running" else None, service=name)
        restarts = Family("tinderbox_service_restarts_total", "Restarts by systemd since it was last started.", COUNTER)
        count = unit.get("NRestarts", "")
        return [states, ready, since, restarts.add(float(count) if count.isdigit() else None, service=name)]

    def _releases(self, name: str) -> list[Family]:
        ledger = Ledger(name, self._root)
        current = ledger.linked("current")
        entries = self._ledger(ledger.directory)
        info = Family("tinderbox_release_info", "1 for the release in force.")
        since = Family("tinderbox_release_timestamp_seconds", "When the release in force was put in force.")
        entry = entries.get(current) if current is not None else None
        if current is not None and entry is not None:
            info.add(1, service=name, release=current, standing=story.standing(entry))
            at = [event for event in story.events(entry) if event["event"] in {story.ACTIVATED, story.RESTORED}]
            since.add(_seconds(at[-1].get("at")) if at else None, service=name)
        counts = {
            "watchdog": ("tinderbox_watchdog_restarts_total", "Restarts of a server that generated no more."),
            "guard": ("tinderbox_load_guard_stops_total", "Loads that were stopped before the memory ran out."),
            "rollback": ("tinderbox_rollbacks_total", "Releases that made way for the one before them."),
            "failed": ("tinderbox_releases_failed_total", "Releases that did not start, or failed their gate."),
        }
        events = [event for one in entries.values() for event in story.events(one)]
        told = {
            "watchdog": sum(e["event"] == story.RESTARTED and e.get("by") == _WATCHDOG for e in events),
            "guard": load_stops(name, self._root),
            "rollback": sum(e["event"] == story.ROLLED_BACK for e in events),
            "failed": sum(e["event"] in {story.FAILED_START, story.FAILED_GATE} for e in events),
        }
        families = [Family(*counts[what], COUNTER).add(float(told[what]), service=name) for what in counts]
        return [info, since, *families] if ledger.directory.is_dir() else []

    def _ledger(self, directory: Path) -> dict[str, dict[str, Any]]:
        found = {}
        for path in directory.glob("*.json"):
            if path.is_symlink() or path.name.endswith(".attestation.json"):
                continue
            try:
                seen = path.stat()
            except OSError:
                continue
            stamp = (seen.st_mtime_ns, seen.st_ino)
            known = self._entries.get(path)
            if known is None or known[0] != stamp:
                entry = read_json(path) or {}
                known = self._entries[path] = (stamp, {"events": entry.get("events") or []})
            found[path.stem] = known[1]
        return found

    def _gate(self, name: str, wish: Mapping[str, Any]) -> list[Family]:
        current = Ledger(name, self._root).linked("current")
        stored: dict[str, Any] = (read_json(self._root / "gates" / name / f"{current}.json") if current else None) or {}
        judgement: dict[str, Any] = stored.get("judgement") or {}
        verdict = judgement.get("verdict") if stored.get("finished") else None
        verdicts = Family("tinderbox_gate_verdict", "1 for the verdict of a gate; MISSING when it was not measured.")
        for one in VERDICTS:
            verdicts.add(float(one == (verdict or "MISSING")), service=name, verdict=one)
        at = Family("tinderbox_gate_measured_timestamp_seconds", "When a gate was last measured.")
        at.add(_seconds(stored.get("finished")), service=name)
        kept = wish.get("units") or {}
        figures = Family("tinderbox_gate_figure", "Mean over the runs, in the metric's own unit, as a client sees it.")
        for metric, value in (judgement.get("figures") or {}).items():
            figures.add(float(value), service=name, metric=metric, unit=kept.get(metric, ""))
        bounds = Family("tinderbox_gate_bound", "What a figure may be at least or at most; warn bounds only warn.")
        for metric, ends in (wish.get("bounds") or {}).items():
            for bound, value in ends.items():
                bounds.add(float(value), service=name, metric=metric, bound=bound, unit=kept.get(metric, ""))
        return [verdicts, at, figures, bounds]


def _seconds(at: object) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(str(at), _FORM)))
    except ValueError:
        return None
