"""The report on one screen: a row for each service. Pure."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from modules.reporting.report import State
from modules.status.report import GateStatus, HostStatus, ServiceStatus, StatusReport
from modules.status.times import ago, span

UNKNOWN, NONE = "?", "-"
_ENDLESS = 10_000
_GIB = 1024**3
_STYLES: dict[State, str] = {
    "running": "green",
    "failed": "bold red",
    "stopped": "yellow",
    "unknown": "bold magenta",
}
_VERDICTS = {"PASS": ("passed", "green"), "WARN": ("warned", "yellow"), "FAIL": ("failed", "bold red")}
_WIDE_COLUMNS = (
    *("host", "service", "release", "state", "since", "tok/s", "queue", "KV"),
    *("memory", "GPU", "last gate", "watchdog"),
)
_NARROW_COLUMNS = ("host\nGPU", "service\nrelease", "state\nsince", "tok/s\nqueue", "memory\nKV", "last gate\nwatchdog")


def table_of(report: StatusReport, width: int | None) -> Table:
    """Of all hosts. Where a row does not fit into `width` each has two lines; None: it is as wide as it is."""
    wide = _table(report, wide=True)
    fits = width is None or Console(width=_ENDLESS).measure(wide).maximum <= width
    return wide if fits else _table(report, wide=False)


def _table(report: StatusReport, *, wide: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for at, column in enumerate(_WIDE_COLUMNS if wide else _NARROW_COLUMNS):
        # Names are as long as people make them.
        table.add_column(column, no_wrap=at > 1, overflow="fold" if at < 2 else "ellipsis")
    for host, name in zip(report.hosts, names_of(report), strict=True):
        for at, service in enumerate(host.services or (None,)):
            cells = _cells(host, service, report.at, first=at == 0, name=name)
            table.add_row(*(cells if wide else _folded(cells)))
    return table


def names_of(report: StatusReport) -> list[str]:
    """The hosts' names, with their fleets' where there are several."""
    several = len({host.fleet for host in report.hosts}) > 1
    return [f"{host.fleet}/{host.name}" if several else host.name for host in report.hosts]


def title_of(report: StatusReport) -> str:
    """How many there are, when they were asked, and what all of it is worth."""
    silent = sum(not host.answers for host in report.hosts)
    unknown = f", {silent} unknown" if silent else ""
    count = f"{len(report.hosts)} host{'s' * (len(report.hosts) != 1)}{unknown}"
    simulated = any(host.gpu is not None and host.gpu.simulated for host in report.hosts)
    note = "; GPUs are simulated, their figures say nothing about a Spark" if simulated else ""
    return f"{count}, {report.at}, {report.seconds:.1f} s{note}"


def _cells(host: HostStatus, service: ServiceStatus | None, now: str, *, first: bool, name: str) -> list[Text]:
    """In the order of the wide columns."""
    shared = [Text(name, "bold"), gpu_text(host)] if first else [Text(""), Text("")]
    if service is None:
        state = Text("no service", "dim") if host.answers else Text("unknown", _STYLES["unknown"])
        gap = Text(NONE if host.answers else UNKNOWN)
        return [
            shared[0],
            gap,
            gap,
            state,
            _since(host, None, now),
            gap,
            gap,
            gap,
            _memory(host, None),
            shared[1],
            gap,
            gap,
        ]
    return [
        shared[0],
        Text(service.name),
        Text((service.release or (UNKNOWN if service.deployed is None else NONE))[:8]),
        Text(service.doing or service.state, _STYLES[service.state]),
        _since(host, service, now),
        Text(tokens_text(service)),
        Text(queue_text(service)),
        Text(cache_text(service)),
        _memory(host if first else None, service),
        shared[1],
        gate_text(service, now) if host.answers else Text(UNKNOWN),
        Text(watchdog_text(service)) if host.answers else Text(UNKNOWN),
    ]


def _folded(cells: list[Text]) -> list[Text]:
    pairs = ((0, 9), (1, 2), (3, 4), (5, 6), (8, 7), (10, 11))
    return [Text("\n").join([cells[above], cells[below]]) for above, below in pairs]


def _serves(service: ServiceStatus) -> bool:
    return service.state == "unknown" or (service.state == "running" and service.worker_of is None)


def _since(host: HostStatus, service: ServiceStatus | None, now: str) -> Text:
    if not host.answers:
        # It is unknown at most since it last answered.
        return Text(f"< {ago(host.seen, now, 1)}" if host.seen else UNKNOWN, "dim")
    return Text(span(service.for_s) if service is not None and service.for_s is not None else UNKNOWN)


def tokens_text(service: ServiceStatus) -> str:
    """Tokens a second now."""
    if not _serves(service):
        return NONE
    if service.tokens_s is None:
        return UNKNOWN
    if service.tokens_s or service.prompt_tokens_s:
        return f"{service.tokens_s:.0f}" if service.tokens_s >= 10 else f"{service.tokens_s:.1f}"
    return "idle" if not service.running else "0"


def queue_text(service: ServiceStatus) -> str:
    """Requests that run, and those that wait."""
    if not _serves(service):
        return NONE
    if service.running is None and service.waiting is None:
        return UNKNOWN
    return "+".join(UNKNOWN if one is None else str(one) for one in (service.running, service.waiting))


def cache_text(service: ServiceStatus) -> str:
    """How full its KV cache is."""
    if not _serves(service):
        return NONE
    return UNKNOWN if service.kv_percent is None else f"{service.kv_percent:.0f} %"


def _memory(host: HostStatus | None, service: ServiceStatus | None) -> Text:
    """Used of its claim; behind it what the host has left."""
    if host is not None and not host.answers:
        return Text(UNKNOWN)
    parts = []
    if service is not None and service.deployed is not False:
        used = NONE if service.state == "stopped" else gib(service.used)
        parts.append(f"{used} of {gib(service.claim)}")
    if host is not None:
        parts.append(f"free {gib(host.available)}")
    return Text(", ".join(parts))


def gib(size: int | None) -> str:
    """A size in GiB, short."""
    return UNKNOWN if size is None else f"{size / _GIB:.0f}G" if size >= 10 * _GIB else f"{size / _GIB:.1f}G"


def gpu_text(host: HostStatus) -> Text:
    """Temperature, clock, power; what holds the clocks back makes it red."""
    gpu = host.gpu
    if gpu is None:
        return Text(UNKNOWN)
    shown = [
        UNKNOWN if value is None else form.format(value)
        for value, form in (
            (gpu.temperature_c, "{:.0f}°C"),
            (gpu.clock_mhz, "{:.0f}MHz"),
            (gpu.power_w, "{:.0f}W"),
        )
    ]
    return Text(" ".join(shown), "red" if gpu.held_back else "")


def gate_text(service: ServiceStatus, now: str) -> Text:
    """Verdict, figure, and how long ago that was."""
    if service.gate is None:
        return Text("not measured" if service.deployed else NONE, "dim")
    return _gate(service.gate, now)


def _gate(gate: GateStatus, now: str) -> Text:
    word, style = _VERDICTS.get(gate.verdict, (gate.verdict, "dim"))
    figure = "" if gate.figure is None else f" {gate.figure:.1f}"
    return Text.assemble((word, style), f"{figure}, {ago(gate.finished, now, 1)}")


def watchdog_text(service: ServiceStatus) -> str:
    """When text last came, or how often it did not."""
    watchdog = service.watchdog
    if watchdog is None or (service.state == "stopped" and watchdog.word is None):
        return NONE
    if service.state != "running":
        return "not watching"
    if not watchdog.active:
        return UNKNOWN if watchdog.active is None else "not watching"
    if watchdog.misses:
        return f"{watchdog.misses} in vain"
    return UNKNOWN if watchdog.generated_s is None else f"text {span(watchdog.generated_s, 1)} ago"
