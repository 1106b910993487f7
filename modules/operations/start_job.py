"""The start of a service as a job on its host, which also has the release before it back."""

from __future__ import annotations

from pyinfra import logger
from pyinfra.api import Host, State

from modules.catalog import load_catalog
from modules.facts.service import FailureLog
from modules.fleet import ServicePlan
from modules.operations.asked import forced, operator, rollout
from modules.operations.follow import follow
from modules.operations.job import Job, start_command
from modules.release import layout
from modules.release.build import start_seconds
from modules.release.diagnosis import explain

START = str(layout.PROGRAMS / "start_service.py")
_started: dict[tuple[str, str], str] = {}


def started_here(host: str, service: str) -> str | None:
    """The release that this run has put in force and seen ready; None where it started none."""
    return _started.get((host, service))


def start_job(
    plan: ServicePlan, release: str, *, attach: bool = False, instead: str | None = None, why: str = ""
) -> Job:
    """The start as a job on the host; twice the engine's time, since it may have to go back.

    `instead`: the release that an operator rolls back by it. `why`: what has changed on the machine.
    """
    words = [layout.PYTHON, START, plan.name, release, "--by", operator()]
    words += ["--attach"] if attach else []
    words += ["--ungated"] if plan.gate is None else []
    words += ["--forced"] if forced() else []
    words += ["--instead", instead] if instead is not None else []
    words += ["--why", why] if why else []
    words += ["--rollout", rollout()] if rollout() else []
    title = f"start {plan.name} ({plan.service.engine}, release {release})"
    return Job("start", f"{plan.name}-{release}", title, tuple(words), _most_seconds(plan))


def settle_job(plan: ServicePlan) -> Job:
    """What ends an activation that is under way: the last good release comes back, or the start is waited for."""
    words = (layout.PYTHON, START, plan.name, "--settle", "--by", operator())
    return Job("start", f"{plan.name}-settle", f"have {plan.name} serve again", words, _most_seconds(plan))


def _most_seconds(plan: ServicePlan) -> int:
    return 2 * (start_seconds(plan) + plan.drain_s) + 600


def follow_start(state: State, host: Host, job: Job, service: str, release: str) -> bool:
    """Follow the start, and explain a failure; pyinfra passes `state` and `host` by name."""
    if follow(state, host, job, start_command(job)):
        _started[host.name, service] = release
        return True
    if not host.connected:
        # A host that is gone can not be asked why, and pyinfra would end the run of the others over it.
        return False
    log = host.get_fact(FailureLog, service=service, release=release) or []
    for line in explain(load_catalog().signatures, log):
        host.log(line, log_func=logger.error)
    if log:
        host.log(f"the failed start's log on the host: {layout.failure_log(service, release)}", log_func=logger.error)
    return False
