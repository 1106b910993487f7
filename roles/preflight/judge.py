"""Whether a machine can do what the fleet file wants of it. Pure: every fact comes in, every verdict goes out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from modules.facts.machine_state import MachineState, NoPython
from modules.fleet import HostPlan
from modules.spec.lock import Lock
from roles.preflight.docker import judge_docker
from roles.preflight.finding import Finding, Severity, found
from roles.preflight.gpu import judge_gpu
from roles.preflight.memory import judge_memory
from roles.preflight.others import judge_others
from roles.preflight.room import judge_room
from roles.preflight.space import judge_caches, judge_space
from roles.preflight.system import judge_system


def judge(state: MachineState | NoPython, plan: HostPlan, lock: Lock) -> list[Finding]:
    """All findings on a host, those that stop it first."""
    if isinstance(state, NoPython):
        command = "sudo apt-get install -y python3"
        remedy = f"install it on the host: `{command}`"
        return [found("python-missing", "python3", state.said, "python3 3.10 or newer", remedy, commands=(command,))]
    findings = [
        *judge_system(state, plan.settings.hardware, plan.settings.fabric),
        *judge_gpu(state, plan.settings.hardware),
        *judge_docker(state),
        *judge_others(state, plan),
        *judge_memory(state, plan),
        *judge_space(state, plan, lock),
        *judge_caches(state),
        *judge_room(state, plan, lock),
    ]
    return sorted(findings, key=lambda finding: list(Severity).index(finding.severity))


def verdict(findings: Iterable[Finding]) -> Literal["ready", "slow", "blocked"]:
    """What the findings come to."""
    severities = {finding.severity for finding in findings}
    return "blocked" if Severity.BLOCKED in severities else "slow" if Severity.SLOW in severities else "ready"
