"""`python -m modules.converge`: bring the fleet to what its fleet file says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from modules.converge.limits import limit_problem, names_of
from modules.converge.outcome import NoResultsError, Outcome, parse_outcome
from modules.converge.process import Finished, heed_sigterm, run_pyinfra
from modules.converge.summary import completed, summary
from modules.fleet import FleetError, load_fleet
from modules.fleet.problem import shown

_DIFFERS = 2
_REFUSED = 1
_INTERRUPTED = 130
# Deploys that end with a gate, and so with figures.
_GATED = ("spark.py", "gate.py")
console = Console(stderr=True, highlight=False)


def main(
    deploy: Annotated[str, typer.Argument(help="the deploy file")] = "deploys/spark.py",
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    dry: Annotated[bool, typer.Option(help="change nothing; exit 2 when a host differs from the fleet file")] = False,
) -> None:
    """Run DEPLOY over the fleet that TINDERBOX_FLEET names (default: the lab).

    Exit status: 0 all hosts are as they should be; 1 a host failed, or the fleet file or the limit was refused; 2 in a
    dry run, a host differs; 130 interrupted.
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
    _print(f"fleet {fleet.name}: {shown(fleet.path)}", "dim")
    status, failed = _report(run_pyinfra(deploy, limits=names_of(given), dry=dry), dry=dry)
    if not dry and status != _INTERRUPTED and Path(deploy).name in _GATED:
        # Here and not above: a run that is refused shall not wait for rich's tables to be loaded.
        from modules.reporting.table import print_table

        print_table(fleet, failed)
    raise typer.Exit(status)


def _refused(text: str) -> typer.Exit:
    _print(text, "red")
    return typer.Exit(_REFUSED)


def _print(text: str, style: str) -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)


def _report(finished: Finished, *, dry: bool) -> tuple[int, list[str]]:
    """The exit status, and the hosts that failed."""
    if finished.status == _INTERRUPTED:
        _print("interrupted; jobs that run on hosts go on, and the next run picks them up", "yellow")
        return _INTERRUPTED, []
    try:
        results: Outcome | None = parse_outcome(finished.results, dry=dry)
    except NoResultsError:
        results = None
    outcome = completed(results, finished.errors, dry=dry)
    if results is not None or outcome.failed or outcome.refused:
        for line, style in summary(outcome, finished.errors, dry=dry):
            _print(line, style)
    if results is None:
        _print(f"no host finished ({finished.seconds:.1f} s); the cause stands above", "red")
        return finished.status or 1, list(outcome.failed)
    _print(f"took {finished.seconds:.1f} s", "dim")
    if outcome.failed or finished.status != 0:
        return finished.status or 1, list(outcome.failed)
    return (_DIFFERS if dry and (outcome.changed or outcome.refused) else 0), []


if __name__ == "__main__":
    typer.run(main)
