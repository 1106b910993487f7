"""The report as a textfile for Prometheus' node exporter (`--collector.textfile.directory`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from modules.gating.judgement import Verdict
from modules.reporting.report import FleetReport, HostReport, MetricReport, ServiceReport

_STATES = ("running", "failed", "stopped", "unknown")
Labels = dict[str, str]
Sample = tuple[Labels, float]


def prometheus_text(report: FleetReport) -> str:
    """Gauges, one family after the other, each with its help and type."""
    lines: list[str] = []
    for name, meaning, samples in _families(report):
        found = list(samples)
        if found:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
            lines += [f"{name}{{{_labels(labels)}}} {value:.10g}" for labels, value in found]
    return "\n".join(lines) + "\n"


def _families(report: FleetReport) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    yield (
        "tinderbox_host_up",
        "1 where a host answered when it was last asked, 0 where it did not.",
        (
            ({"fleet": report.fleet, "host": host.name, "simulated": _truth(host.simulated)}, float(not host.trouble))
            for host in report.hosts
            if host.seen is not None or host.trouble is not None
        ),
    )
    services = [(host, service) for host in report.hosts for service in host.services]
    yield (
        "tinderbox_service_state",
        "1 for the state that a service is in.",
        (
            ({**_of(report, host, service), "state": state}, float(service.state == state))
            for host, service in services
            for state in _STATES
        ),
    )
    yield (
        "tinderbox_load_seconds",
        "What a load of the weights from the disk takes at least, by what was measured on the host.",
        ((_of(report, host, service), service.load.seconds) for host, service in services if service.load is not None),
    )
    gated = [(host, service) for host, service in services if service.gated]
    yield (
        "tinderbox_gate_verdict",
        "1 for the verdict of a gate; MISSING when it was not measured.",
        (
            ({**_of(report, host, service), "verdict": verdict}, float(_verdict(service) == verdict))
            for host, service in gated
            for verdict in (*Verdict, "MISSING")
        ),
    )
    yield (
        "tinderbox_gate_measured_timestamp_seconds",
        "When a gate was last measured.",
        (
            (_of(report, host, service), datetime.fromisoformat(service.gate.measured).timestamp())
            for host, service in gated
            if service.gate is not None
        ),
    )
    metrics = [
        (host, service, metric)
        for host, service in gated
        for metric in (service.gate.metrics if service.gate is not None else ())
        if metric.now is not None
    ]
    yield (
        "tinderbox_gate_tokens_per_second",
        "Speed as a client sees it, mean over the runs.",
        (_measured(report, *one) for one in metrics if one[2].unit == "tok/s"),
    )
    yield (
        "tinderbox_gate_latency_seconds",
        "Time as a client sees it, mean over the runs.",
        (
            (labels, value / 1000)
            for labels, value in (_measured(report, *one) for one in metrics if one[2].unit == "ms")
        ),
    )


def _verdict(service: ServiceReport) -> str:
    return "MISSING" if service.gate is None else str(service.gate.verdict)


def _measured(report: FleetReport, host: HostReport, service: ServiceReport, metric: MetricReport) -> Sample:
    mean = metric.now.mean if metric.now is not None else float("nan")
    return {**_of(report, host, service), "release": service.release or "", "metric": metric.name}, mean


def _of(report: FleetReport, host: HostReport, service: ServiceReport) -> Labels:
    return {
        "fleet": report.fleet,
        "host": host.name,
        "service": service.name,
        "simulated": _truth(host.simulated),
    }


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _labels(labels: Labels) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
