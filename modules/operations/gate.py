"""A service's gate on a host: measured when there is a reason to, until the verdict is no longer in doubt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from pyinfra import host
from pyinfra.api import FileUploadCommand, FunctionCommand, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.catalog import load_catalog
from modules.facts.gate import Evidence, GateEvidence, GateResult, GateState, ServiceGate
from modules.facts.survey import Question
from modules.fleet import ServicePlan, load_fleet
from modules.gating import Judgement, Verdict
from modules.gating.decision import decide
from modules.gating.explain import Case, Cause, explain, shortfall
from modules.gating.metrics import Measurement
from modules.gating.need import why_measure
from modules.gating.noted import judgement_document, noted_judgement
from modules.gating.parts import measurement_of_parts
from modules.gating.proof import is_proven
from modules.gating.steps import Step, following, seconds_of, whole
from modules.operations import drain
from modules.operations.differences import differs
from modules.operations.gate_client import measured_here
from modules.operations.gate_failed import failed_gate, measured_on_host, reason_of
from modules.operations.gate_job import gate_client, gate_job
from modules.operations.gate_memory import Found, keep, keep_record, measured_service, references
from modules.operations.job import start_command
from modules.operations.require import refusal, unreadable
from modules.operations.start_job import started_here
from modules.release import layout
from modules.spec.gate import CONTROLLER, HOST, Gate

JUDGE = str(layout.PROGRAMS / "judge_release.py")
DATASETS = layout.STATE / "datasets"


def measurement(gate: Gate, result: GateResult) -> Measurement:
    """What a host keeps, as figures."""
    return measurement_of_parts(gate, result.parts, result.faults)


def conditions(result: GateResult) -> str:
    """What the GPU did while it was measured: low clocks are another fault than a wrong backend."""
    units = {"clock_mhz": "MHz", "power_w": "W", "temperature_c": "°C"}
    seen = [
        f"{one['median']:g} {units[field]} ({one['min']:g} to {one['max']:g})"
        for field, one in result.samples.items()
        if field in units
    ]
    return f"{result.gpu or 'no GPU'} meanwhile: {', '.join(seen) or 'tells nothing'}"


def causes_of(
    plan: ServicePlan, gate: Gate, measured: Measurement, judgement: Judgement, evidence: Evidence
) -> tuple[Cause, ...]:
    """Why it did not pass; nothing of what did."""
    if judgement.verdict is Verdict.PASS:
        return ()
    others = [one.concurrency for one in (gate.random, gate.sharegpt) if one is not None]
    failed = tuple(line.metric for line in judgement.lines if line.verdict is not Verdict.PASS)
    case = Case(
        model=plan.model.served_as,
        streams=max([*gate.workload.concurrency, *others]),
        metrics=measured.metrics,
        failed=failed,
        telemetry=evidence.samples,
        log=evidence.log,
        faults=measured.faults,
        short_by=shortfall(gate.thresholds, measured.metrics, failed),
    )
    return explain(case, load_catalog().explanations)


def _dataset(gate: Gate, found: GateState) -> Generator[PyinfraCommand, None, None]:
    """Have the gate's dataset on the host; it needs no internet for it."""
    if gate.sharegpt is None or gate.sharegpt.dataset.sha256 in found.datasets:
        return
    dataset = gate.sharegpt.dataset
    path = Path(dataset.file)
    try:
        seen = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        yield refusal(f"{host.name}: the dataset {path} of its gate could not be read here: {error}")
        return
    if seen != dataset.sha256:
        yield refusal(
            f"{host.name}: {path} has sha256 {seen}, and its gate wants {dataset.sha256}: correct one of them"
        )
        return
    target = DATASETS / f"{dataset.sha256}.json"
    yield StringCommand("mkdir", "-p", str(DATASETS))
    yield FileUploadCommand(str(path), f"{target}.new")
    yield StringCommand("mv", f"{target}.new", str(target))


def gate_there(plan: ServicePlan) -> Question[GateState]:
    """The release in force, and what was measured of it."""
    return Question(ServiceGate, {"service": plan.name})


@operation()
def gate_passed(plan: ServicePlan, gate: Gate, home: str, asked: bool = False) -> Generator[PyinfraCommand, None, None]:
    """Hold the service's release against its gate; a failure fails this host with figures and likely cause.

    + plan: the service
    + gate: workloads and thresholds
    + home: the Hugging Face home that holds the model, whose tokenizer counts the tokens
    + asked: measure in any case
    """
    found = gate_there(plan).of(host)
    if found is None:
        yield from unreadable(f"the gate of service {plan.name}")
        return
    release, commit = found.current, found.commit
    if release is None or commit is None:
        yield refusal(f"{host.name}: service {plan.name} has no release to measure; run stage engine first")
        return
    ours = started_here(host.name, plan.name)
    if ours not in {None, release}:
        yield refusal(
            f"{host.name}: this run started release {ours} of {plan.name}, and another one has put {release} in force "
            "since: what this fleet file wants does not serve. Let one run end before the next, and run again."
        )
        return
    why = why_measure(gate, plan.answers, found, asked=asked)
    if why is None and found.result is not None:
        measured = measurement(gate, found.result)
        noted = noted_judgement(gate, found, measured)
        if noted is not None:
            keep(measured_service(plan, release, found.result, noted, measured))
            host.noop(f"{plan.name}, release {release}: {noted.verdict} (measured {found.result.finished})")
            if found.closed:
                yield drain.opened(plan.name)
            return
    differs(f"gate of {plan.name}", why or "is to be judged by other thresholds than the last time")
    rounds = 0
    step = None if why is None else whole(gate, why)
    while True:
        before = found
        if step is not None:
            yield from _measured(plan, gate, found, step, home)
            found = host.get_fact(ServiceGate, service=plan.name)
            rounds += 1
        # A host that answers every command with success (pyinfra's `@fake`) has measured nothing.
        idle = step is not None and found is not None and found.result == before.result
        if found is None or found.current != release or found.result is None or idle:
            yield from unreadable(f"what was measured of service {plan.name}")
            return
        measured = measurement(gate, found.result)
        decision = decide(gate, measured, references(plan, gate, found))
        step = following(gate, found.result, measured, decision, rounds=rounds)
        if step is None:
            break
    yield from _judged(plan, gate, found, measured, decision.judgement)


def _measured(
    plan: ServicePlan, gate: Gate, found: GateState, step: Step, home: str
) -> Generator[PyinfraCommand, None, None]:
    """Measure, having said why, and how long it will take."""
    host.log(f"{plan.name}: {step.text(gate, seconds_of(gate, plan.answers, found))}")
    if "sharegpt" in step.measure:
        yield from _dataset(gate, found)
    if found.has_gateway:
        # Whoever else asks meanwhile would be measured, too. Said for every step: judging the last one took a moment.
        yield drain.held(plan.name)
    client = None
    if gate.client == CONTROLLER:
        client = gate_client(plan, gate, found, step, home, around=load_fleet().hosts[host.name])
    job = gate_job(plan, gate, found, step, home, client=client)
    measure: Callable[..., bool] = measured_on_host if client is None else measured_here
    arguments: tuple[Any, ...] = (job,) if client is None else (job, client)
    if client is None:
        yield start_command(job)
    if found.has_gateway:
        measure, arguments = drain.measured, (measure, arguments, plan.name)
    yield FunctionCommand(measure, arguments, {})


def _judged(
    plan: ServicePlan, gate: Gate, found: GateState, measured: Measurement, judgement: Judgement
) -> Generator[PyinfraCommand, None, None]:
    """Note the judgement on the host and here; fail the host where it failed."""
    result, release = found.result, found.current
    if result is None or release is None:
        return
    evidence = host.get_fact(GateEvidence, service=plan.name) or Evidence()
    causes = causes_of(plan, gate, measured, judgement, evidence)
    service = measured_service(plan, release, result, judgement, measured)
    keep(service)
    keep_record(plan, gate, service, Found(found, judgement, causes, evidence))
    proven = is_proven(judgement, measured, result.client)
    request = {
        "service": plan.name,
        "id": release,
        "good": judgement.verdict is not Verdict.FAIL,
        "proven": proven,
        "reason": reason_of(judgement),
        "judgement": judgement_document(gate, judgement, causes),
    }
    yield StringCommand(layout.PYTHON, JUDGE, _stdin=json.dumps(request))
    if judgement.verdict is Verdict.FAIL:
        why = "\n".join(cause.text() for cause in causes)
        text = (
            f"{host.name}: gate of {plan.name} failed, release {release}, measured {result.finished}:\n"
            f"{judgement.text()}\n{why}\n{conditions(result)}\n"
            f"everything: {layout.gate_result_file(plan.name, release)}."
        )
        yield from failed_gate(plan, found, text, proven=proven)
        return
    where = "" if result.client == HOST else " from the controller"
    host.log(f"{plan.name}, release {release}: {judgement.verdict} (measured{where} {result.finished})")
