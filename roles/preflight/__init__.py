"""Is this the machine that the fleet file means, and can it do what is wanted? Asked before anything is changed."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import deploy

from modules.facts.machine import Machine
from modules.fleet import HostPlan, load_fleet
from modules.fleet.lock import read_lock
from modules.operations.connection import keep_alive
from modules.operations.require import require
from roles.preflight.finding import blocking
from roles.preflight.judge import judge
from roles.preflight.report import report, stop_host
from roles.preflight.space import models_asked


@deploy("Preflight")
def preflight(plan: HostPlan) -> None:
    """Stop this host, and no other, when it can not do what is wanted of it; change nothing in any case.

    A machine is judged while the run is prepared, because only that holds for a dry run too and comes before every
    other stage. What is judged is not changed by anything that comes before.
    """
    keep_alive(host)
    state = host.get_fact(Machine, paths=[plan.settings.weights.home], models=models_asked(plan), _sudo=False)
    if state is None:
        return  # the fact has failed the host, and said why
    findings = judge(state, plan, read_lock(load_fleet().path))
    report(host, findings)
    if blocking(findings):
        stop_host(host, findings)
        return
    require(name="The machine can do what the fleet file wants", ok=True, message="")
