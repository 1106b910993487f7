"""What was gathered on a host: logs by kind, the unit's state, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modules.diagnosis.mask import mask_lines
from modules.diagnosis.observations import observations
from modules.facts.parse.text import lines_of
from modules.spec.signature import LogSource


@dataclass(frozen=True)
class Log:
    """`trouble`: why it could not be read, which is not to say that nothing stands in it."""

    name: str
    kind: LogSource
    lines: tuple[str, ...] = ()
    trouble: str | None = None


@dataclass(frozen=True)
class Bundle:
    """`failed`: whether something is known to have gone wrong, by the unit's state or by who asks."""

    logs: tuple[Log, ...]
    failed: bool = False


def start_bundle(log: Iterable[str], secrets: Iterable[str] = ()) -> Bundle:
    """What is known right after a start that failed: its log alone."""
    return Bundle((Log("log", "engine", mask_lines(log, secrets)),), failed=True)


def bundle_of(document: Mapping[str, Any], secrets: Iterable[str] = ()) -> Bundle:
    """What `hostside/gather_evidence.py` prints, masked once more. Raises `KeyError` for anything else."""
    known = tuple(secrets)
    logs = [
        Log(log["name"], log["kind"], mask_lines(lines_of(log["text"]), known), log["trouble"])
        for log in document["logs"]
    ]
    unit = document["unit"] or {}
    seen = observations(document["files"], document["gpu"], unit)
    logs.append(Log("figures", "machine", seen.lines, seen.trouble))
    return Bundle(tuple(logs), failed=_failed(unit))


def _failed(unit: Mapping[str, str]) -> bool:
    """A unit that failed, or that has had to start again; one that starts for the first time may yet succeed."""
    restarts = unit.get("NRestarts", "0")
    return (
        unit.get("ActiveState") == "failed"
        or unit.get("Result", "success") != "success"
        or (restarts.isdigit() and int(restarts) > 0)
    )
