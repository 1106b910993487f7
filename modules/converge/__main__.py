"""`python -m modules.converge`: bring the fleet to what its fleet file says."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from modules.converge.holder import taken_over_text
from modules.converge.limits import hosts_within, limit_problem, names_of
from modules.converge.lock import HeldError, held
from modules.converge.process import INTERRUPTED, heed_sigterm
from modules.converge.run import Pass, one_pass
from modules.converge.tell import say, tell_pass
from modules.fleet import Fleet, FleetError, load_fleet
from modules.fleet.problem import shown
from modules.reporting.left_behind import Left

_DIFFERS = 2
_REFUSED = 1
# Deploys that end with a gate, and so with figures.
_GATED = ("spark.py", "gate.py")


def main(
    deploy: Annotated[str, typer.Argument(help="the deploy file")] = "deploys/spark.py",
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    dry: Annotated[bool, typer.Option(help="change nothing; exit 2 when a host differs from the fleet file")] = False,
) -> None:
    """Run DEPLOY over the fleet that TINDERBOX_FLEET names (default: the lab): a dry run first, then the change.

    Exit status: 0 all hosts are as they should be; 1 a host failed or was refused, or the fleet file or the limit was
    refused; 2 in a dry run, a host differs; 130 interrupted.
    """
    heed_sigterm()
    given = limit or []
    try:
        fleet = load_fleet()
    except FleetError as error:
        raise _refused(str(error)) from error
    problem = limit_problem(given, fleet)
    if problem is not None:
        raise _refused(problem)
    if not Path(deploy).is_file():
        raise _refused(f"no such deploy file: {deploy}; see deploys/")
    # So that nobody deploys to the lab, the default, for want of a variable without seeing it.
    say(f"fleet {fleet.name}: {shown(fleet.path)}", "dim")
    for remark in fleet.remarks:
        say(remark.told(shown(fleet.path)), "yellow")
    try:
        if dry:
            raise typer.Exit(_looked(fleet, deploy, names_of(given)))
        with held(fleet, deploy) as before:
            if before is not None:
                say(taken_over_text(before, time.time()), "yellow")
            raise typer.Exit(_converged(fleet, deploy, names_of(given)))
    except HeldError as error:
        raise _refused(str(error)) from error
    except KeyboardInterrupt as error:
        # Between two runs of pyinfra; typer would end with 1.
        say(Left().text(), "yellow")
        raise typer.Exit(INTERRUPTED) from error


def _refused(text: str) -> typer.Exit:
    say(text, "red")
    return typer.Exit(_REFUSED)


def _looked(fleet: Fleet, deploy: str, limits: list[str]) -> int:
    seen = one_pass(deploy, limits, dry=True)
    tell_pass(seen)
    if seen.interrupted:
        return INTERRUPTED
    if not seen.succeeded:
        return seen.status or _REFUSED
    return _DIFFERS if seen.outcome.changed or seen.outcome.refused else 0


def _converged(fleet: Fleet, deploy: str, limits: list[str]) -> int:
    """A dry run, and the change of the hosts that it leaves; hosts that fail there, or would be refused, stay as is."""
    foreseen = one_pass(deploy, limits, dry=True)
    tell_pass(foreseen, first=True)
    status = INTERRUPTED if foreseen.interrupted else 0 if foreseen.succeeded and not foreseen.outcome.refused else 1
    failed = foreseen.stopped
    # Also those without a difference of their own: they give weights and images to the others.
    left = [host for host in hosts_within(limits, fleet) if host not in failed]
    if status != INTERRUPTED and foreseen.finished and foreseen.outcome.changed and left:
        done = _applied(deploy, limits if not failed else left)
        failed = sorted({*failed, *done.stopped})
        status = INTERRUPTED if done.interrupted else max(status, 0 if done.succeeded else done.status or 1)
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
    typer.run(main)
