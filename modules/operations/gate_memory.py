"""What the controller keeps of gates, and what it knows of other hosts' ones."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra import host, logger
from pyinfra.api import Host, State

from modules.facts.gate import Evidence, GateResult, GateState
from modules.fleet import ServicePlan, load_fleet
from modules.gating import Judgement, Verdict
from modules.gating.command import workload_command
from modules.gating.explain import Cause
from modules.gating.identity import thresholds_id
from modules.gating.metrics import Measurement
from modules.gating.parts import measurement_of_parts
from modules.gating.references import References
from modules.reporting.measured import MeasuredService, figure_of, forget, load_measured, remember
from modules.reporting.record import forget_record, note_gate
from modules.spec.gate import Gate


@dataclass(frozen=True)
class Found:
    """What a gate found: as the host told it, and what follows."""

    state: GateState
    judgement: Judgement
    causes: tuple[Cause, ...]
    evidence: Evidence


def references(plan: ServicePlan, gate: Gate, found: GateState) -> References:
    """The host's last good measurement, and what the controller knows of the fleet's other hosts."""
    last_good = {} if found.reference is None else measurement_of_parts(gate, found.reference.parts).metrics
    alike = [
        one
        for one in load_measured(load_fleet().name).services.values()
        if one.host != host.name
        and (one.engine, one.profile, one.model) == (plan.service.engine, plan.service.profile, plan.model.served_as)
        and one.client == gate.client
        and one.verdict is not Verdict.FAIL
    ]
    names = gate.metrics()
    fleet = {name: tuple(one.metrics[name].mean for one in alike if name in one.metrics) for name in names}
    return References(last_good, fleet)


def measured_service(
    plan: ServicePlan, release: str, result: GateResult, judgement: Judgement, measured: Measurement
) -> MeasuredService:
    """As the controller keeps it, for tables and reports."""
    return MeasuredService(
        host=host.name,
        service=plan.name,
        engine=plan.service.engine,
        profile=plan.service.profile,
        model=plan.model.served_as,
        port=plan.service.port,
        gpu=result.gpu,
        release=release,
        verdict=judgement.verdict,
        measured=result.finished,
        metrics={name: figure_of(metric) for name, metric in measured.metrics.items()},
        reasons=[line.text() for line in judgement.lines if line.reason],
        client=result.client,
        judged_by=thresholds_id(plan.gate) if plan.gate is not None else "",
    )


def keep(service: MeasuredService) -> None:
    """Keep the figures in place of the former ones."""
    try:
        remember(load_fleet().name, service)
    except OSError as error:
        # An exception would end the run of every host, and the host keeps its results anyway.
        logger.warning("%s: the controller could not keep what was measured: %s", host.name, error)


def forget_service(state: State, host: Host, service: str) -> bool:
    """Keep nothing here of a service that was taken off its host; pyinfra passes `state` and `host` by name."""
    try:
        forget(load_fleet().name, host.name, service)
        forget_record(load_fleet().name, host.name, service)
    except OSError as error:
        logger.warning("%s: the controller could not forget service %s: %s", host.name, service, error)
    return True


def keep_record(plan: ServicePlan, gate: Gate, service: MeasuredService, found: Found) -> None:
    """Keep what else a report shows: history, telemetry, likely causes."""
    good = found.state.current if found.judgement.verdict is not Verdict.FAIL else found.state.last_good
    try:
        note_gate(
            load_fleet().name,
            service,
            found.judgement,
            last_good=good,
            driver=found.state.driver,
            workload=workload_command(gate.workload, plan.model.repository, plan.model.served_as, gate.client),
            telemetry=found.evidence.samples,
            causes=found.causes,
        )
    except OSError as error:
        logger.warning("%s: the controller could not keep the gate's record: %s", host.name, error)
