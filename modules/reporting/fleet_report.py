"""Fleet file, last results and records → the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from modules.catalog import Catalog
from modules.fleet import Fleet, ServicePlan
from modules.fleet.plan import host_plan
from modules.gating.judgement import Verdict
from modules.reporting.measured import Measured, MeasuredService
from modules.reporting.metric_report import metric_of, verdicts_of
from modules.reporting.record import HostRecord, ServiceRecord
from modules.reporting.report import (
    FleetReport,
    GateReport,
    HistoryPoint,
    HostReport,
    Published,
    ServiceReport,
    State,
)
from modules.rollout.record import newest
from modules.spec.baseline import Baseline
from modules.spec.fleet import ResolvedHost
from modules.spec.gate import Gate

Records = Callable[[str, str], ServiceRecord]
"""Host and service → what is kept of it."""
HostRecords = Callable[[str], HostRecord]
"""Host → what is kept of it."""


def fleet_report(
    fleet: Fleet,
    measured: Measured,
    records: Records,
    catalog: Catalog,
    *,
    generated: str,
    baselines: Mapping[str, Baseline] | None = None,
    hosts: HostRecords = lambda _: HostRecord(),
) -> FleetReport:
    """Everything that is known of the fleet's hosts, also of those where nothing was measured.

    `baselines`: the fleet's own, which come before the catalog's.
    """
    known = catalog.model_copy(update={"baselines": {**(baselines or {}), **catalog.baselines}})
    reports = tuple(_host(host, measured, records, hosts(host.name), known) for host in fleet.hosts.values())
    rollouts = [record for record in (hosts(name).rollout for name in fleet.hosts) if record is not None]
    return FleetReport(fleet=fleet.name, generated=generated, hosts=reports, rollout=newest(rollouts))


def _host(host: ResolvedHost, measured: Measured, records: Records, record: HostRecord, catalog: Catalog) -> HostReport:
    plan = host_plan(host, catalog)
    found = [
        (one, measured.services.get(f"{host.name}/{one.name}"), _known(records(host.name, one.name), record))
        for one in plan.services
    ]
    services = tuple(_service(*one, catalog) for one in found)
    gpus = (record.gpu, *(result.gpu for _, result, _ in found if result is not None))
    drivers = (record.driver, *(one.driver for _, _, one in found))
    answers = record.seen is not None and record.trouble is None
    return HostReport(
        name=host.name,
        state="running" if answers and not services else _worst_state(service.state for service in services),
        simulated=plan.simulated,
        gpu=next((gpu for gpu in gpus if gpu is not None), None),
        driver=next((driver for driver in drivers if driver is not None), None),
        seen=record.seen,
        trouble=record.trouble,
        services=services,
    )


def _known(record: ServiceRecord, host: HostRecord) -> ServiceRecord:
    """How a service stood on a host that does not answer any more is not how it stands."""
    return record if host.trouble is None else record.model_copy(update={"state": "unknown", "unit": ""})


def _worst_state(states: Iterable[State]) -> State:
    """A host is as its services are: failed when one is, and running only when all are known to."""
    known = set(states)
    order: tuple[State, ...] = ("failed", "unknown", "stopped", "running")
    return next((state for state in order if state in known), "unknown")


def _service(
    plan: ServicePlan, measured: MeasuredService | None, record: ServiceRecord, catalog: Catalog
) -> ServiceReport:
    if measured is not None and record.current not in {None, measured.release}:
        # Of a release that is not in force any more, or not yet; it stays in the history.
        measured = None
    gate = None if measured is None or plan.gate is None else _gate(plan, plan.gate, measured, record, catalog)
    return ServiceReport(
        name=plan.name,
        engine=plan.service.engine,
        profile=plan.service.profile,
        model=plan.model.served_as,
        state=record.state,
        gated=plan.gate is not None,
        release=record.current if measured is None else measured.release,
        last_good=record.last_good,
        gate=gate,
        # Figures with the network's share and without it make no curve.
        history=tuple(point for point in record.history if measured is None or point.client == measured.client),
        memory=record.memory,
        load=record.load,
        unit=record.unit,
        releases=record.releases,
        failure=record.failure,
    )


def _gate(
    plan: ServicePlan, gate: Gate, measured: MeasuredService, record: ServiceRecord, catalog: Catalog
) -> GateReport:
    former = _former_good(record.history, measured)
    lines = verdicts_of(gate, measured, record)
    published = _published(plan, catalog)
    names = [*gate.thresholds, *(name for name in measured.metrics if name not in gate.thresholds)]
    return GateReport(
        verdict=measured.verdict,
        measured=measured.measured,
        metrics=tuple(
            metric_of(
                name,
                threshold=gate.thresholds.get(name),
                line=lines.get(name),
                figure=measured.metrics.get(name),
                published=published.get(name),
                former=former,
                outdated=name in gate.thresholds and measured.outdated(gate),
            )
            for name in names
        ),
        workload=record.workload,
        causes=record.causes if measured.verdict is not Verdict.PASS else (),
        telemetry=record.telemetry,
        faults={name: line.reason for name, line in lines.items() if name not in names},
    )


def _former_good(history: Sequence[HistoryPoint], measured: MeasuredService) -> HistoryPoint | None:
    """The last good measurement of another release, before this one."""
    good = [
        point
        for point in history
        if point.release != measured.release
        and point.client == measured.client
        and point.verdict is not Verdict.FAIL
        and point.measured <= measured.measured
    ]
    return good[-1] if good else None


def _published(plan: ServicePlan, catalog: Catalog) -> Mapping[str, Published]:
    """What others measured with this engine and model; of several the one that comes first."""
    names = {plan.model.served_as, plan.service.model if isinstance(plan.service.model, str) else ""}
    found: dict[str, Published] = {}
    for name, baseline in catalog.baselines.items():
        if baseline.engine != plan.service.engine or baseline.model not in names:
            continue
        for metric, figure in baseline.figures.items():
            # "pp2048 c1 (run with tg32)": the same figure once for each generated size; any will do.
            published = Published(value=figure.value, std=figure.std, name=name, source=baseline.source)
            found.setdefault(metric.split(" (")[0], published)
    return found
