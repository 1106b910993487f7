"""What follows from a gate that has failed, or that came to no figure."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, State
from pyinfra.api.command import PyinfraCommand

from modules.facts.gate import GateState
from modules.fleet import ServicePlan
from modules.gating import Judgement, Verdict
from modules.hostside.version_changes import changes, told
from modules.operations.follow import follow, tell
from modules.operations.gate_client import NOTHING_MEASURED
from modules.operations.job import Job, start_command
from modules.operations.require import refusal
from modules.operations.start_job import settle_job
from modules.release.history import versions_in


def reason_of(judgement: Judgement) -> str:
    """Why it failed, in one line: what the ledger tells of the release."""
    failed = [line for line in judgement.lines if line.verdict is Verdict.FAIL]
    figures = [("" if line.measured is None else f"{line.measured.mean:.2f} ") + line.reason for line in failed]
    return "; ".join(f"{line.metric}: {figure}" for line, figure in zip(failed, figures, strict=True))


def since_good(found: GateState) -> str:
    """Which of the machine's parts have changed since the release was last found good, or that none has."""
    before, result = found.proved_on or {}, found.result
    changed = changes(before, found.versions if result is None else result.versions)
    if changed:
        return f"Since it was last good: {told(changed)}."
    known = ", ".join(versions_in(before))
    return f"No part of the machine that was noted then has another version now ({known})." if known else ""


def failed_gate(
    plan: ServicePlan, found: GateState, text: str, *, proven: bool
) -> Generator[PyinfraCommand, None, None]:
    """Have the last good release back where there is another one, and fail the host. `text`: what was judged."""
    release, good = found.current, found.last_good
    if not proven:
        yield refusal(
            f"{text}\nNo figure speaks against the server, so release {release} goes on serving: the next run measures "
            "again."
        )
    elif good is None:
        yield refusal(
            f"{text}\nThere is no good release to go back to, so release {release} goes on serving: the next run "
            "measures again."
        )
    elif good == release:
        yield refusal(
            f"{text}\nRelease {release} was good before and is the last good one, so it goes on serving: something "
            f"else has changed on the host. {since_good(found)} The next run measures again."
        )
    else:
        host.log(text, log_func=logger.error)
        job = settle_job(plan)
        yield start_command(job)
        yield FunctionCommand(follow, (job, start_command(job)), {})
        yield refusal(
            f"{host.name}: release {release} of {plan.name} failed its gate, and release {good} serves again. "
            f"{release} is not tried again unchanged: change the service in the fleet file, or set TINDERBOX_FORCE=1."
        )


def measured_on_host(state: State, host: Host, job: Job) -> bool:
    """Follow the measurement; where nothing came of it, say what that means. pyinfra passes `state` and `host`."""
    done = follow(state, host, job, start_command(job))
    if not done:
        tell(host, [f"{job.title}: {NOTHING_MEASURED}"], logger.warning)
    return done
