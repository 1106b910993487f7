"""What has no room in a row of the screen: a line each. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from modules.status.report import HostStatus, ServiceStatus, StatusReport
from modules.status.table import gib, names_of


def remarks(report: StatusReport) -> Iterator[tuple[str, str]]:
    """What has no room in a row: a line each, with its style."""
    names = names_of(report)
    for host, name in zip(report.hosts, names, strict=True):
        for text, style in _of_host(host):
            yield f"{name}: {text}", style
        for service in host.services:
            for text, style in _of_service(service, host):
                yield f"{name}/{service.name}: {text}", style


def _of_host(host: HostStatus) -> Iterator[tuple[str, str]]:
    if not host.answers:
        seen = f"it last answered at {host.seen}" if host.seen else "this machine has never had an answer of it"
        yield f"unknown, {seen}: {host.trouble}", "magenta"
        return
    if host.programs == "none":
        yield "nothing of Tinderbox is deployed here yet: make converge", "yellow"
    elif host.programs == "other":
        yield "its programs are of another version of Tinderbox than this checkout: make converge renews them", "dim"
    if host.root is False:
        yield "sudo asks for a password, so less is known: whose processes there are, and keys of engines", "yellow"
    if host.gpu_trouble is not None:
        yield f"the GPU is unknown: {host.gpu_trouble}", "yellow"
    if host.gpu is not None and host.gpu.held_back:
        yield f"the GPU's clocks are held back: {', '.join(host.gpu.held_back)}", "red"
    if host.run is not None:
        yield f"a run changes it now: {host.run}", "cyan"
    for job in host.jobs:
        yield f"job {job} is under way", "cyan"
    for one in host.strangers:
        where = f", in container {one.container}" if one.container else ""
        memory = f", {gib(one.memory)}" if one.memory is not None else ""
        yield f"not of Tinderbox, on {one.where}: {one.name or 'a process'} (pid {one.pid}{where}{memory})", "yellow"


def _of_service(service: ServiceStatus, host: HostStatus) -> Iterator[tuple[str, str]]:
    if service.why is not None:
        yield service.why, "red"
    if service.state == "stopped" and service.wanted and service.deployed:
        yield "stopped: make converge starts it", "yellow"
    if host.answers and service.deployed is False and host.programs != "none":
        yield "not deployed yet: make converge", "yellow"
    if not service.wanted:
        yield "the fleet file has it no more", "yellow"
    if service.worker_of is not None:
        yield f"a part of the service of {service.worker_of}, which has its API", "dim"
    if service.closed:
        yield "closed: gateways are told to send it nothing", "yellow"
    other = service.gate_of_another
    if other is not None and other.verdict != "PASS":
        reason = f": {other.reason}" if other.reason else ""
        yield f"another release, {other.release[:8]}, {other.verdict} at {other.finished}{reason}", "yellow"
    if service.gate is not None and service.gate.reason:
        yield f"gate {service.gate.verdict}: {service.gate.reason}", "yellow"
    watchdog = service.watchdog
    if watchdog is not None and watchdog.word is not None:
        yield f"the watchdog restarted it at {watchdog.word_at}: {watchdog.word}", "yellow"
