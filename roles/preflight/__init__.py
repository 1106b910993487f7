"""Is this the machine that the fleet file means, and can it do what is wanted? Asked before anything is changed."""

from __future__ import annotations

from typing import Any

from pyinfra import host
from pyinfra.api import deploy

from modules.catalog import load_catalog
from modules.check.kept import keep
from modules.check.text import lines_of
from modules.facts.machine import Machine
from modules.fleet import HostPlan, load_fleet
from modules.fleet.lock import read_lock
from modules.operations.connection import keep_alive
from modules.operations.require import require
from roles.preflight.finding import blocking
from roles.preflight.foresee import checked
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
    state = host.get_fact(Machine, **asked(plan), _sudo=False)
    if state is None:
        return  # the fact has failed the host, and said why
    lock = read_lock(load_fleet().path)
    findings = judge(state, plan, lock)
    check = checked(state, plan, lock, findings)
    keep(check)
    report(host, findings, lines_of(check))
    if blocking(findings):
        stop_host(host, findings)
        return
    require(name="The machine can do what the fleet file wants", ok=True, message="")


def asked(plan: HostPlan) -> dict[str, Any]:
    """What fact `Machine` is asked for a host."""
    at = {one.name: (one.service.listen, one.service.port) for one in plan.services if not one.is_worker}
    engines = sorted({engine.process for engine in load_catalog().engines.values()})
    return {
        "paths": [plan.settings.weights.home],
        "models": models_asked(plan),
        "ports": at,
        "engines": engines,
    }
