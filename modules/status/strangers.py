"""Processes of others where a service computes, or would listen. They are named, and left alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from modules.facts.parse.errors import ParseError
from modules.facts.parse.nvidia_smi import ComputeApp, parse_compute_apps
from modules.fleet import ServicePlan
from modules.status.report import Stranger

Document = Mapping[str, Any]
_OURS = "tinderbox-"
_MIB = 1024**2


def strangers(told: Document, wanted: Mapping[str, ServicePlan]) -> tuple[Stranger, ...]:
    """On the GPU, and at the ports of the services that the fleet file gives the host."""
    return (*_on_gpu(told), *(one for plan in wanted.values() if not plan.is_worker for one in _at_port(told, plan)))


def apps_in(told: Document) -> tuple[ComputeApp, ...]:
    """What computes on the GPU; nothing where nvidia-smi does not tell."""
    try:
        return parse_compute_apps(str((told.get("apps") or {}).get("out", "")))
    except ParseError:
        return ()


def place_of(pid: int, told: Document) -> str | None:
    """The container or unit of ours that a process runs in; None: it is another's, or gone."""
    found: Document = (told.get("pids") or {}).get(str(pid)) or {}
    container = _containers(told).get(str(found.get("container")))
    if container is not None and (container["service"] or str(container["name"]).startswith(_OURS)):
        return str(found["container"])
    unit = found.get("unit")
    return None if unit is None else str(unit)


def memory_by_place(told: Document) -> dict[str, int]:
    """Container or unit of ours → bytes that its processes have on the GPU."""
    found: dict[str, int] = {}
    for app in apps_in(told):
        place = place_of(app.pid, told)
        if place is not None and app.memory_mib is not None:
            found[place] = found.get(place, 0) + app.memory_mib * _MIB
    return found


def _on_gpu(told: Document) -> Iterator[Stranger]:
    # Whose a process is can not be told while docker gives no answer.
    if told.get("containers") is None:
        return
    for app in apps_in(told):
        if place_of(app.pid, told) is None:
            memory = None if app.memory_mib is None else app.memory_mib * _MIB
            yield _named("GPU", app.pid, app.name, told, memory)


def _at_port(told: Document, plan: ServicePlan) -> Iterator[Stranger]:
    holders = (told.get("ports") or {}).get(str(plan.service.port))
    if told.get("containers") is None or not holders:
        return
    for pid in holders:
        if not _serves(pid, plan.name, told):
            yield _named(f"port {plan.service.port}", pid, None, told, None)


def _serves(pid: int, service: str, told: Document) -> bool:
    found: Document = (told.get("pids") or {}).get(str(pid)) or {}
    container = _containers(told).get(str(found.get("container"))) or {}
    return f"{_OURS}{service}" in {
        f"{_OURS}{container.get('service')}",
        container.get("name"),
        str(found.get("unit")).removesuffix(".service"),
    }


def _named(where: str, pid: int, name: str | None, told: Document, memory: int | None) -> Stranger:
    found: Document = (told.get("pids") or {}).get(str(pid)) or {}
    container = _containers(told).get(str(found.get("container")))
    return Stranger(
        where=where,
        pid=pid,
        name=name or found.get("name"),
        container=None if container is None else container["name"],
        memory=memory,
    )


def _containers(told: Document) -> dict[str, Document]:
    return {str(one["id"]): one for one in told.get("containers") or ()}
