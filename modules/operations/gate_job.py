"""A service's measurement as a job on its host."""

from __future__ import annotations

import json

from modules.facts.gate import GateState
from modules.fleet import ServicePlan
from modules.gating.identity import workload_id, workloads
from modules.gating.steps import Step
from modules.operations.job import Job
from modules.release import layout
from modules.release.build import key_variable, start_seconds
from modules.spec.gate import OVERHEAD_S, Gate


def gate_job(plan: ServicePlan, gate: Gate, found: GateState, step: Step, home: str) -> Job:
    """What `step` measures. What was spent on the runs before is off the gate's time budget."""
    service, measured = plan.service, workload_id(gate, plan.answers)
    snapshot = layout.snapshot_directory(home, plan.model.repository, str(found.commit))
    spent = found.result.seconds if step.append and found.result is not None else 0.0
    budget = gate.budget_s - spent
    words = [layout.PYTHON, str(layout.PROGRAMS / "run_gate.py"), "--service", plan.name]
    words += ["--release", str(found.current), "--url", layout.endpoint(service.listen, service.port)]
    words += ["--model", plan.model.repository, "--served-as", plan.model.served_as]
    words += ["--tokenizer", snapshot, "--model-path", snapshot, "--container", layout.container_name(plan.name)]
    words += ["--gate", json.dumps(workloads(gate, plan.answers)), "--measure", json.dumps(dict(step.measure))]
    words += ["--workload-id", measured, "--wait", str(start_seconds(plan)), "--budget", f"{budget:.0f}"]
    words += ["--append"] if step.append else []
    variable = key_variable(plan)
    if variable is not None:
        words += ["--secret-file", layout.secret_file(plan.name), "--key-variable", variable]
    return Job(
        name="gate",
        key=f"{plan.name}-{found.current}-{measured}",
        title=f"measure {plan.name} (release {found.current}){' again, to be sure' if step.append else ''}",
        command=tuple(words),
        timeout_s=round(budget) + start_seconds(plan) + OVERHEAD_S,
    )
