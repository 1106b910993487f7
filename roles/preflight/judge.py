"""Whether a machine can do what the fleet file wants of it. Pure: every fact comes in, every verdict goes out."""

from __future__ import annotations

from modules.facts.machine import MachineState, NoPython
from modules.fleet import HostPlan
from modules.spec.lock import Lock
from roles.preflight.finding import Finding, Severity
from roles.preflight.gpu import judge_gpu
from roles.preflight.room import judge_room
from roles.preflight.space import judge_space
from roles.preflight.system import judge_system


def judge(state: MachineState | NoPython, plan: HostPlan, lock: Lock) -> list[Finding]:
    """All findings on a host, those that stop it first."""
    if isinstance(state, NoPython):
        remedy = "install it on the host: `sudo apt-get install python3`"
        return [Finding(Severity.BLOCKED, "python3", state.said, "python3 3.10 or newer", remedy)]
    findings = [
        *judge_system(state, plan.settings.hardware, plan.settings.fabric),
        *judge_gpu(state, plan.settings.hardware),
        *judge_space(state, plan, lock),
        *judge_room(state, plan, lock),
    ]
    return sorted(findings, key=lambda finding: list(Severity).index(finding.severity))
