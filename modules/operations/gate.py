"""A service's gate on a host: measured once for each release and workload, judged every time."""

from __future__ import annotations

import json
from collections.abc import Generator

from pyinfra import host, logger
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.gate import GateResult, GateState, ServiceGate
from modules.fleet import ServicePlan, load_fleet
from modules.gating import Judgement, Verdict, judge, measurement_of, thresholds_id, workload_id
from modules.gating.need import needs_measuring
from modules.operations.engine import LEDGER
from modules.operations.job import Job, run_job
from modules.operations.require import refusal, unreadable
from modules.release import layout
from modules.release.build import key_variable, start_seconds
from modules.reporting.measured import MeasuredService, figure_of, remember
from modules.spec.gate import Gate

# Beside the measured requests: load of the tokenizer, warm-ups, a discarded run for each cell.
OVERHEAD_S = 120


def gate_job(plan: ServicePlan, gate: Gate, release: str, commit: str, home: str) -> Job:
    """The measurement as a job on the host."""
    service, measured = plan.service, workload_id(gate.workload)
    words = [layout.PYTHON, str(layout.PROGRAMS / "run_gate.py"), "--service", plan.name, "--release", release]
    words += ["--url", layout.endpoint(service.listen, service.port)]
    words += ["--model", plan.model.repository, "--served-as", plan.model.served_as]
    words += ["--tokenizer", layout.snapshot_directory(home, plan.model.repository, commit)]
    words += ["--workload", gate.workload.model_dump_json(), "--workload-id", measured]
    words += ["--wait", str(start_seconds(plan))]
    variable = key_variable(plan)
    if variable is not None:
        words += ["--secret-file", layout.secret_file(plan.name), "--key-variable", variable]
    return Job(
        name="gate",
        key=f"{plan.name}-{release}-{measured}",
        title=f"measure {plan.name} (release {release})",
        command=tuple(words),
        timeout_s=gate.workload.time_limit_s + start_seconds(plan) + OVERHEAD_S,
    )


def judgement_request(plan: ServicePlan, gate: Gate, release: str, judgement: Judgement) -> str:
    """What `ledger.py judge` reads."""
    return json.dumps(
        {
            "service": plan.name,
            "id": release,
            "good": judgement.verdict is not Verdict.FAIL,
            "judgement": {"verdict": str(judgement.verdict), "thresholds": thresholds_id(gate)},
        }
    )


def is_noted(gate: Gate, judgement: Judgement, found: GateState) -> bool:
    """Whether the host already has this judgement, and the ledger what follows from it."""
    noted = found.result.judgement if found.result is not None else None
    if noted is None or (noted["verdict"], noted["thresholds"]) != (str(judgement.verdict), thresholds_id(gate)):
        return False
    return judgement.verdict is Verdict.FAIL or found.last_good == found.current


def conditions(result: GateResult) -> str:
    """What the GPU did while it was measured: low clocks are another fault than a wrong backend."""
    units = {"clock_mhz": "MHz", "power_w": "W", "temperature_c": "°C"}
    told = [
        f"{seen['median']:g} {units[field]} ({seen['min']:g} to {seen['max']:g})"
        for field, seen in result.samples.items()
        if field in units
    ]
    return f"{result.gpu or 'no GPU'} meanwhile: {', '.join(told) or 'tells nothing'}"


def remember_measured(plan: ServicePlan, gate: Gate, release: str, result: GateResult, judgement: Judgement) -> None:
    """Keep on the controller what was read, for tables and reports."""
    measurement = measurement_of(result.report, gate.workload)
    remember(
        load_fleet().name,
        MeasuredService(
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
            metrics={name: figure_of(metric) for name, metric in measurement.metrics.items()},
            reasons=[line.text() for line in judgement.lines if line.reason],
        ),
    )


@operation()
def gate_passed(plan: ServicePlan, gate: Gate, home: str) -> Generator[PyinfraCommand, None, None]:
    """Hold the service's release against its gate; a failure fails this host with the figures.

    + plan: the service
    + gate: workload and thresholds
    + home: the Hugging Face home that holds the model, whose tokenizer counts the tokens
    """
    found = host.get_fact(ServiceGate, service=plan.name)
    if found is None:
        yield from unreadable(f"the gate of service {plan.name}")
        return
    if found.current is None or found.commit is None:
        yield refusal(f"{host.name}: service {plan.name} has no release to measure; run stage engine first")
        return
    if needs_measuring(gate, found.result):
        yield from run_job(gate_job(plan, gate, found.current, found.commit, home))
        found = host.get_fact(ServiceGate, service=plan.name)
    if found is None or found.current is None or found.result is None:
        yield from unreadable(f"what was measured of service {plan.name}")
        return
    result = found.result
    judgement = judge(gate.thresholds, measurement_of(result.report, gate.workload))
    try:
        remember_measured(plan, gate, found.current, result, judgement)
    except OSError as error:
        # An exception would end the run of every host, and the host keeps its results anyway.
        logger.warning("%s: the controller could not keep what was measured: %s", host.name, error)
    if not is_noted(gate, judgement, found):
        request = judgement_request(plan, gate, found.current, judgement)
        yield StringCommand(layout.PYTHON, LEDGER, "judge", _stdin=request)
    if judgement.verdict is Verdict.FAIL:
        yield refusal(
            f"{host.name}: gate of {plan.name} failed, release {found.current}, measured {result.finished}:\n"
            f"{judgement.text()}\n{conditions(result)}\n"
            f"everything: {layout.gate_result_file(plan.name, found.current)}. The next run measures again."
        )
        return
    host.noop(f"{plan.name}, release {found.current}: {judgement.verdict} (measured {result.finished})")
