"""What differs from the fleet file, host by host and thing by thing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from modules.converge.run import Pass
from modules.converge.summary import excerpt
from modules.reporting.differences import Difference
from modules.reporting.host_errors import HostError

# Exit statuses. A host that was not looked at wholly is neither fine nor different.
SAME, FAILED, DIFFERS, UNKNOWN = 0, 1, 2, 3
# How preflight begins what it says of a host that it stops.
_STOPPED = "preflight "


class HostState(Enum):
    """`REFUSED`: it can not be brought to what the fleet file says; `UNKNOWN`: it could not be looked at wholly."""

    SAME = "same"
    DIFFERS = "differs"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class HostDrift:
    """A host: what differs there, and why it was refused or could not be looked at."""

    host: str
    state: HostState
    differences: tuple[Difference, ...] = ()
    why: tuple[str, ...] = ()


def drift_of(hosts: Sequence[str], seen: Pass) -> list[HostDrift]:
    """Every host of a dry run that was not interrupted."""
    return [_host_drift(host, seen) for host in hosts]


def _host_drift(host: str, seen: Pass) -> HostDrift:
    differences = tuple(_differences(host, seen))
    errors = seen.errors.get(host, ())
    if host in seen.outcome.failed or not seen.finished:
        stopped = [error for error in errors if error["said"].startswith(_STOPPED)]
        why = tuple(line for error in stopped for line in error["said"].splitlines()) or tuple(excerpt(errors))
        state = HostState.REFUSED if stopped else HostState.UNKNOWN
        return HostDrift(host, state, differences, why or ("the run ended before it was looked at",))
    if host in seen.outcome.refused:
        return HostDrift(host, HostState.REFUSED, differences, tuple(_refusals(errors)))
    return HostDrift(host, HostState.DIFFERS if differences else HostState.SAME, differences)


def _refusals(errors: Sequence[HostError]) -> list[str]:
    return [line for error in errors if error.get("foreseen") for line in error["said"].splitlines()]


def _differences(host: str, seen: Pass) -> list[Difference]:
    """Those that were noted; and the operations that would change the host without having said what.

    An operation that only serves other hosts has noted a nameless one.
    """
    noted = [one for one in seen.differences if one["host"] == host]
    explained = tuple({one["operation"] for one in noted})
    silent = [name for name in seen.outcome.changed.get(host, []) if not name.startswith(explained)]
    return [one for one in noted if one["thing"]] + [
        Difference(host=host, operation=name, thing=name, detail="would change") for name in silent
    ]


def drift_status(drift: Sequence[HostDrift]) -> int:
    """What a run with `--drift` ends with."""
    states = {one.state for one in drift}
    if states & {HostState.DIFFERS, HostState.REFUSED}:
        return DIFFERS
    return UNKNOWN if HostState.UNKNOWN in states else SAME


def drift_lines(drift: Sequence[HostDrift]) -> list[tuple[str, str]]:
    """For people: a line a thing, and below it how it differs; with the lines' styles."""
    lines: list[tuple[str, str]] = []
    for one in drift:
        for difference in one.differences:
            first, *more = difference["detail"].splitlines() or [""]
            lines.append((f"{one.host}: {difference['thing']} {first}", "yellow"))
            lines += [(f"    {line}", "dim") for line in more]
        if one.state in {HostState.REFUSED, HostState.UNKNOWN}:
            told = "can not be brought to the fleet file" if one.state is HostState.REFUSED else "unknown"
            lines.append((f"{one.host}: {told}:", "red"))
            lines += [(f"    {line.removeprefix(f'{one.host}: ')}", "red") for line in one.why]
    counts = {state: sum(one.state is state for one in drift) for state in HostState}
    told = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    lines.append(
        (f"{len(drift)} host{'s' * (len(drift) != 1)}: {told}", "green" if drift_status(drift) == SAME else "yellow")
    )
    return lines


def drift_document(fleet: str, drift: Sequence[HostDrift], seconds: float) -> dict[str, Any]:
    """For machines."""
    return {
        "fleet": fleet,
        "status": drift_status(drift),
        "seconds": round(seconds, 1),
        "hosts": {
            one.host: {
                "state": one.state.value,
                "differences": [
                    {key: difference[key] for key in ("operation", "thing", "detail")} for difference in one.differences
                ],
                "why": list(one.why),
            }
            for one in drift
        },
    }
