"""The fleet at one glance: how many gates passed, and each host's decode speed beside the others'."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from modules.gating.judgement import Verdict
from modules.reporting.report import FleetReport, HostReport, MetricReport, ServiceReport


@dataclass(frozen=True)
class Bar:
    """A host's decode speed. `share`: of the fastest, in percent."""

    host: str
    service: str
    model: str
    metric: MetricReport
    verdict: Verdict
    share: float


@dataclass(frozen=True)
class Counts:
    """Services that have a gate, by what became of it."""

    passed: int
    warned: int
    failed: int
    unmeasured: int


def counts(report: FleetReport) -> Counts:
    """Of the whole fleet."""
    found = Counter(
        None if service.gate is None else service.gate.verdict
        for host in report.hosts
        for service in host.services
        if service.gated
    )
    return Counts(found[Verdict.PASS], found[Verdict.WARN], found[Verdict.FAIL], found[None])


def headline(service: ServiceReport) -> tuple[MetricReport, ...]:
    """The first decode, prefill and time figure that was measured."""
    if service.gate is None:
        return ()
    measured = [metric for metric in service.gate.metrics if metric.now is not None]
    firsts = (
        next((one for one in measured if one.title == title), None) for title in ("Decode", "Prefill", "First answer")
    )
    return tuple(one for one in firsts if one is not None)


def bars(hosts: Sequence[HostReport]) -> tuple[Bar, ...]:
    """Decode of services that can be compared, the fastest first; empty where there are no two of a kind.

    Of a kind are those that serve the same model and measured the same figure, simulated hosts among themselves.
    """
    kinds: defaultdict[tuple[str, str, bool], list[tuple[str, ServiceReport, MetricReport]]] = defaultdict(list)
    for host in hosts:
        for service in host.services:
            for metric in headline(service)[:1]:
                if metric.title == "Decode":
                    kinds[service.model, metric.name, host.simulated].append((host.name, service, metric))
    largest = max(kinds.values(), key=len, default=[])
    if len(largest) < 2:
        return ()
    fastest = max(metric.now.mean for _, _, metric in largest if metric.now is not None)
    made = [
        Bar(host, service.name, service.model, metric, service.gate.verdict, 100 * metric.now.mean / fastest)
        for host, service, metric in largest
        if service.gate is not None and metric.now is not None
    ]
    return tuple(sorted(made, key=lambda bar: -bar.share))
