"""A service's measurement as a job on its host, and what of it the controller runs where the gate wants that."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field

from modules.facts.gate import GateState
from modules.fleet import ServicePlan
from modules.gating.identity import workload_id, workloads
from modules.gating.steps import Step
from modules.operations.engine import service_secrets
from modules.operations.job import Job
from modules.release import layout
from modules.release.build import key_file, key_variable, makes_key, start_seconds
from modules.spec.fleet import ResolvedHost
from modules.spec.gate import BENCHY, COLD_START, OVERHEAD_S, Gate


@dataclass(frozen=True)
class Client:
    """What the controller measures of a service. `token`: by which the host's job knows the figures.

    `arguments`: of `run_client.py`, without paths of the controller's own. `secret`: `VARIABLE=VALUE` of the API key;
    `made_key`: the variable and the file on the host, where the host has made the key. `snapshot`: the model on the
    host, for its tokenizer, which llama-benchy needs here (`benchy`). `drained`: gateways send it nothing meanwhile.
    """

    service: str
    token: str
    arguments: tuple[str, ...]
    limit_s: float
    benchy: bool
    snapshot: str
    secret: str = field(default="", repr=False)
    made_key: tuple[str, str] | None = None
    drained: bool = False


def forward_words(around: ResolvedHost, endpoint: str) -> list[str]:
    """`ssh` with the fleet's settings, as pyinfra connects; nobody is asked for anything. `{port}`: this end's."""
    ssh = around.ssh
    words = ["ssh", "-N", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=15"]
    words += ["-F", ssh.config] if ssh.config is not None else []
    words += ["-o", f"StrictHostKeyChecking={'yes' if ssh.known_hosts else 'accept-new'}"]
    words += ["-o", f"UserKnownHostsFile={ssh.known_hosts}"] if ssh.known_hosts is not None else []
    words += ["-i", ssh.key] if ssh.key is not None else []
    words += ["-p", str(ssh.port), "-l", ssh.user]
    return [*words, "-L", f"127.0.0.1:{{port}}:{endpoint.removeprefix('http://')}", around.address]


def gate_client(
    plan: ServicePlan, gate: Gate, found: GateState, step: Step, home: str, *, around: ResolvedHost
) -> Client | None:
    """What of `step` the controller runs; None where all of it is the host's (a cold start, from its log)."""
    runs = {kind: count for kind, count in step.measure.items() if kind != COLD_START}
    if not runs:
        return None
    endpoint = layout.endpoint(plan.service.listen, plan.service.port)
    budget = _budget(gate, found, step)
    words = ["--model", plan.model.repository, "--served-as", plan.model.served_as]
    words += ["--forward", json.dumps(forward_words(around, endpoint))]
    words += ["--gate", json.dumps(workloads(gate, plan.answers)), "--measure", json.dumps(runs)]
    words += ["--budget", f"{budget:.0f}"]
    variable, known = key_variable(plan), service_secrets(plan)
    words += ["--key-variable", variable] if variable is not None else []
    return Client(
        service=plan.name,
        token=secrets.token_hex(4),
        arguments=tuple(words),
        limit_s=budget + OVERHEAD_S,
        benchy=BENCHY in runs,
        snapshot=layout.snapshot_directory(home, plan.model.repository, str(found.commit)),
        secret=f"{variable}={known[variable]}" if variable in known else "",
        made_key=(variable, key_file(plan)) if variable is not None and makes_key(plan) else None,
        drained=found.has_gateway,
    )


def _budget(gate: Gate, found: GateState, step: Step) -> float:
    """Seconds. What was spent on the runs before is off the gate's time budget."""
    return gate.budget_s - (found.result.seconds if step.append and found.result is not None else 0.0)


def gate_job(
    plan: ServicePlan, gate: Gate, found: GateState, step: Step, home: str, *, client: Client | None = None
) -> Job:
    """What `step` measures. With a `client` the host samples meanwhile, and keeps the result.

    No two measurements from the controller are the same job: one whose controller is gone has nobody to wait for.
    """
    service, measured = plan.service, workload_id(gate, plan.answers)
    snapshot = layout.snapshot_directory(home, plan.model.repository, str(found.commit))
    budget = _budget(gate, found, step)
    words = [layout.PYTHON, str(layout.PROGRAMS / "run_gate.py"), "--service", plan.name]
    words += ["--release", str(found.current), "--url", layout.endpoint(service.listen, service.port)]
    words += ["--model", plan.model.repository, "--served-as", plan.model.served_as]
    words += ["--tokenizer", snapshot, "--model-path", snapshot, "--container", layout.container_name(plan.name)]
    words += ["--gate", json.dumps(workloads(gate, plan.answers)), "--measure", json.dumps(dict(step.measure))]
    words += ["--workload-id", measured, "--wait", str(start_seconds(plan)), "--budget", f"{budget:.0f}"]
    words += ["--append"] if step.append else []
    words += ["--client", client.token] if client is not None else []
    variable = key_variable(plan)
    if variable is not None:
        words += ["--secret-file", key_file(plan), "--key-variable", variable]
    where = " from the controller" if client is not None else ""
    return Job(
        name="gate",
        key="-".join([plan.name, str(found.current), measured, *([client.token] if client is not None else [])]),
        title=f"measure {plan.name} (release {found.current}){' again, to be sure' if step.append else ''}{where}",
        command=tuple(words),
        timeout_s=round(budget) + start_seconds(plan) + OVERHEAD_S,
    )
