"""`python -m modules.converge`: bring the fleet to what its fleet file says."""

from __future__ import annotations

from modules.converge.early import heed

# isort: split
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from modules.converge.asked import asked_fleet, refused
from modules.converge.drift import DIFFERS, FAILED, HostState, drift_document, drift_of, drift_status
from modules.converge.holder import taken_over_text
from modules.converge.layers import layers_problem
from modules.converge.limits import hosts_within, names_of
from modules.converge.lock import HeldError, held
from modules.converge.process import INTERRUPTED
from modules.converge.program import start
from modules.converge.rolling import STEPWISE, roll_out, why_of
from modules.converge.run import Pass, one_pass
from modules.converge.stopped import doubtful, left_out
from modules.converge.tell import say, say_what_follows, tell_drift, tell_pass
from modules.fleet import Fleet, FleetError
from modules.fleet.lock import read_lock
from modules.fleet.needs import needs_secrets
from modules.fleet.problem import shown
from modules.reporting.left_behind import Left

# Deploys that end with a gate, and so with figures.
_EVERYTHING = "deploys/spark.py"
_GATED = ("spark.py", "gate.py", "measure.py")


def main(  # noqa: PLR0917
    deploy: Annotated[str, typer.Argument(help="the deploy file")] = _EVERYTHING,
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    dry: Annotated[bool, typer.Option(help="change nothing; exit 2 when a host differs from the fleet file")] = False,
    drift: Annotated[bool, typer.Option(help="as --dry, and list what differs, thing by thing; 3: unknown")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="with --drift: the list as JSON, too, on stdout")] = False,
    confirm: Annotated[bool, typer.Option(help="ask at the terminal before the change")] = False,
) -> None:
    """Run DEPLOY over the fleet that TINDERBOX_FLEET names (default: the lab): a dry run first, then the change.

    Exit status: 0 all hosts are as they should be; 1 a host failed or was refused, or the fleet file or the limit was
    refused, or another run holds the fleet; 2 in a dry run, a host differs; 3 with --drift, no host is seen to differ,
    and one could not be looked at; 130 interrupted.
    """
    heed()
    given = limit or []
    fleet = asked_fleet(given)
    problem = layers_problem(deploy)
    if confirm and not sys.stdin.isatty():
        problem = "--confirm asks at a terminal, and there is none; leave it out to have the change made unasked"
    if problem is not None:
        raise refused(problem)
    if not Path(deploy).is_file():
        raise refused(f"no such deploy file: {deploy}; see deploys/")
    try:
        if needs_secrets([deploy]):
            fleet.fetch_needed()
    except FleetError as error:
        raise refused(str(error)) from error
    # So that nobody deploys to the lab, the default, for want of a variable without seeing it.
    say(f"fleet {fleet.name}: {shown(fleet.path)}", "dim")
    _tell_placements(fleet)
    for remark in fleet.remarks:
        say(remark.told(shown(fleet.path)), "yellow")
    try:
        if drift:
            raise typer.Exit(_drifted(fleet, deploy, names_of(given), as_json=as_json))
        if dry:
            raise typer.Exit(_looked(fleet, deploy, names_of(given)))
        with held(fleet, deploy) as before:
            if before is not None:
                say(taken_over_text(before, time.time()), "yellow")
            raise typer.Exit(_converged(fleet, deploy, names_of(given), confirm=confirm))
    except HeldError as error:
        raise refused(str(error)) from error
    except KeyboardInterrupt as error:
        # Between two runs of pyinfra; typer would end with 1.
        say(Left().text(), "yellow")
        raise typer.Exit(INTERRUPTED) from error


def _tell_placements(fleet: Fleet) -> None:
    """Say on which hosts the fleet's own services are, before anything is done."""
    if not fleet.placements:
        return
    # Here, since few fleets have any.
    from modules.fleet.shown import placement_lines

    for line in placement_lines(fleet.placements, read_lock(fleet.path)):
        say(line, "cyan")


def _looked(fleet: Fleet, deploy: str, limits: list[str]) -> int:
    seen = one_pass(deploy, limits, dry=True)
    tell_pass(seen)
    if seen.interrupted:
        return INTERRUPTED
    if not seen.succeeded:
        return seen.status or FAILED
    if not seen.outcome.changed and not seen.outcome.refused:
        return 0
    say("nothing was changed: this was a look; without --dry it is done (make remove: with CONSENT=1)", "dim")
    return DIFFERS


def _drifted(fleet: Fleet, deploy: str, limits: list[str], *, as_json: bool) -> int:
    seen = one_pass(deploy, limits, dry=True)
    if seen.interrupted:
        tell_pass(seen)
        return INTERRUPTED
    if not seen.finished and not seen.outcome.failed:
        tell_pass(seen)
        return FAILED
    drift = drift_of(hosts_within(limits, fleet), seen)
    tell_drift(drift, seen.seconds)
    if deploy == _EVERYTHING and any(one.state is HostState.DIFFERS for one in drift):
        say("make converge has it as the fleet file says", "dim")
    if as_json:
        print(json.dumps(drift_document(fleet.name, drift, seen.seconds), indent=1))  # noqa: T201
    return drift_status(drift)


def _converged(fleet: Fleet, deploy: str, limits: list[str], *, confirm: bool) -> int:
    """A dry run, and the change of the hosts that it leaves; hosts that fail there, or would be refused, stay as is."""
    foreseen = one_pass(deploy, limits, dry=True)
    tell_pass(foreseen)
    failed = left_out(foreseen)
    # Also those without a difference of their own: they give weights and images to the others.
    left = [host for host in hosts_within(limits, fleet) if host not in failed]
    unsure = [host for host in doubtful(foreseen) if host in left]
    aborted = not foreseen.finished and not foreseen.outcome.failed
    strategy = fleet.strategy if Path(deploy).name == STEPWISE else None
    status = INTERRUPTED if foreseen.interrupted else FAILED if failed or aborted else 0
    differs = bool(foreseen.outcome.changed or unsure) and bool(left or strategy is not None)
    if status != INTERRUPTED and not aborted and differs:
        if confirm:
            tell_drift(drift_of(left, foreseen), foreseen.seconds)
            if not typer.confirm("Make this change?", err=True):
                say("nothing was changed", "yellow")
                return status
        say_what_follows(unsure)
        if strategy is not None:
            # Also those that failed: which release is not tried again on one host decides for the others.
            refused = {host: why_of(foreseen, host) for host in foreseen.outcome.refused if host in failed}
            status, failed = roll_out(fleet, strategy, hosts_within(limits, fleet), refused)
        else:
            done = _applied(deploy, left if failed else limits)
            failed = sorted({*failed, *done.stopped})
            status = INTERRUPTED if done.interrupted else max(status, 0 if done.succeeded else done.status or FAILED)
    if status != INTERRUPTED and Path(deploy).name in _GATED:
        # Here and not above: a run that is refused shall not wait for rich's tables to be loaded.
        from modules.reporting.table import print_table

        print_table(fleet, failed)
    return status


def _applied(deploy: str, hosts: Sequence[str]) -> Pass:
    """The change itself."""
    done = one_pass(deploy, hosts, dry=False)
    tell_pass(done)
    return done


if __name__ == "__main__":
    start(main)
