"""The fleet at one glance: how many gates passed, and each host's decode speed beside the others'."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from modules.gating.judgement import Verdict
from modules.reporting.report import FleetReport, HostReport, MetricReport, ServiceReport
from modules.reporting.wording import workload_title


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
class Concern:
    """Something that the owner should look at. `kind`: a verdict or a state; `why`: what is known of it."""

    host: str
    service: str
    kind: str
    why: str


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


def concerns(hosts: Sequence[HostReport]) -> tuple[Concern, ...]:
    """What does not serve, did not pass, or is not known; failures first."""
    found = [concern for host in hosts for service in host.services for concern in _concern(host, service)]
    order = ("FAIL", "failed", "unknown", "not measured", "WARN")
    return tuple(sorted(found, key=lambda concern: order.index(concern.kind)))


def _concern(host: HostReport, service: ServiceReport) -> Iterator[Concern]:
    gate = service.gate
    if service.failure is not None:
        causes = [f"likely cause: {cause.cause}" for cause in service.failure.causes] or list(service.failure.reasons)
        why = f"release {service.failure.release} failed, and another one serves since; {'; '.join(causes)}"
        yield Concern(host.name, service.name, "WARN", why.rstrip("; "))
    if gate is not None and gate.verdict is not Verdict.PASS:
        faults = [f"{workload_title(name).lower()}: {fault}" for name, fault in gate.faults.items()]
        reasons = faults + [f"{metric.title.lower()} {metric.reason}" for metric in gate.metrics if metric.reason]
        causes = [f"likely cause: {cause.cause}" for cause in gate.causes]
        yield Concern(host.name, service.name, str(gate.verdict), "; ".join(causes or reasons))
    if service.load is not None and service.load.slow:
        yield Concern(host.name, service.name, "WARN", service.load.slow)
    if service.state == "failed":
        yield Concern(host.name, service.name, "failed", "its unit has failed")
    elif service.state == "unknown":
        why = "the host does not tell" if host.trouble else "the host was not asked, or did not answer"
        yield Concern(host.name, service.name, "unknown", why)
    elif gate is None and service.gated:
        yield Concern(host.name, service.name, "not measured", "its gate was not measured yet")


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
