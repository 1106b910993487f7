"""What a host has told → its state. Pure: what it did not tell stays unknown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from modules.asking.side_by_side import Answer
from modules.facts.parse.errors import ParseError
from modules.facts.parse.meminfo import parse_meminfo
from modules.facts.parse.nvidia_smi import parse_gpus
from modules.fleet import HostPlan
from modules.spec.fleet import ResolvedHost
from modules.spec.holder import parse_holder
from modules.status.report import GpuStatus, HostStatus, Programs, ServiceStatus
from modules.status.service import service_status
from modules.status.strangers import strangers
from modules.status.times import utc

Document = Mapping[str, Any]
_FORM = 1
_JOB = re.compile(r"tinderbox-job-(?P<name>.+)\.service")
_LONGEST = 300


class UnreadableError(ValueError):
    """What a host printed is no answer."""


def document_in(answer: Answer) -> dict[str, Any]:
    """The host's own account; a login banner may stand before it.

    Raises `UnreadableError`: with what it said in its place.
    """
    line = next((line for line in answer.out.splitlines() if line.startswith('{"status"')), None)
    try:
        found: dict[str, Any] = json.loads(line or "")["status"]
        if found["form"] == _FORM:
            return found
    except (ValueError, KeyError, TypeError):
        pass
    said = [line.strip() for line in (answer.err or answer.out).splitlines() if line.strip()]
    cut = "the connection broke before its answer was whole" if answer.status is None else "it gave no answer"
    raise UnreadableError(f"{cut}{f': {said[-1][:_LONGEST]}' if said else ''}")


def host_status(fleet: str, host: ResolvedHost, plan: HostPlan, told: Document, programs: int) -> HostStatus:
    """`programs`: the sum over those of this checkout. An account of an unknown form raises as Python does."""
    memory = _memory(str(told["meminfo"]))
    gpu, trouble = _gpu(told.get("gpu"), simulated=plan.simulated)
    wanted = {one.name: one for one in plan.services}
    return HostStatus(
        fleet=fleet,
        name=host.name,
        address=host.address,
        answers=True,
        seen=utc(float(told["at"])),
        programs=_programs(told.get("programs"), programs),
        root=bool(told["root"]),
        gpu=gpu,
        gpu_trouble=trouble,
        strangers=strangers(told, wanted),
        run=_run(told.get("run"), float(told["at"])),
        jobs=tuple(sorted(_jobs(told.get("units") or {}))),
        services=tuple(
            service_status(name, wanted.get(name), told) for name in {**dict.fromkeys(wanted), **_known(told)}
        ),
        **memory,
    )


def unknown_status(
    fleet: str, host: ResolvedHost, plan: HostPlan, trouble: str, last_seen: str | None = None
) -> HostStatus:
    """A host that did not tell: neither it nor its services are failed, or fine. `last_seen`: UTC."""
    return HostStatus(
        fleet=fleet,
        name=host.name,
        address=host.address,
        answers=False,
        seen=last_seen,
        trouble=trouble,
        services=tuple(ServiceStatus(name=one.name, port=one.service.port) for one in plan.services),
    )


def _known(told: Document) -> dict[str, None]:
    """What the ledger knows and the fleet file does not, where there is anything of it."""
    services: Mapping[str, Any] = told["services"]
    return {name: None for name, one in services.items() if one.get("current") is not None}


def _programs(found: int | None, here: int) -> Programs:
    return "none" if found is None else "same" if found == here else "other"


def _memory(meminfo: str) -> dict[str, int]:
    try:
        found = parse_meminfo(meminfo)
    except ParseError:
        return {}
    return {"memory": found.total, "available": found.available, "swap_used": found.swap_total - found.swap_free}


def _gpu(told: Document | None, *, simulated: bool) -> tuple[GpuStatus | None, str | None]:
    """The first GPU, or why nothing is known of it."""
    if told is None:
        return None, "nvidia-smi is not there, or does not end"
    try:
        first = parse_gpus(str(told["out"]))[0]
    except (ParseError, IndexError) as error:
        said = [line for line in str(told["out"]).splitlines() if line.strip()]
        return None, f"nvidia-smi: {said[-1][:_LONGEST] if said else error}"
    return (
        GpuStatus(
            name=first.name,
            simulated=simulated or "simulated" in first.name,
            clock_mhz=first.sm_mhz,
            max_clock_mhz=first.max_sm_mhz,
            power_w=first.power_w,
            temperature_c=first.temperature_c,
            busy_percent=first.utilization_pct,
            held_back=tuple(reason for reason in first.reasons if reason != "idle"),
        ),
        None,
    )


def _run(told: Document | None, now: float) -> str | None:
    if not told:
        return None
    holder = parse_holder(json.dumps(dict(told)))
    return holder.text(now) if holder is not None else "one that does not say who it is"


def _jobs(units: Mapping[str, Mapping[str, str]]) -> list[str]:
    found = ((_JOB.fullmatch(name), unit.get("ActiveState")) for name, unit in units.items())
    return [match["name"] for match, state in found if match is not None and state in {"active", "activating"}]
