"""`python -m modules.converge`: bring the fleet to what its fleet file says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from modules.converge.outcome import NoResultsError, Outcome, parse_outcome, unmatched
from modules.converge.process import Finished, run_pyinfra
from modules.fleet import FleetError, load_fleet

_DIFFERS = 2
_REFUSED = 2
_INTERRUPTED = 130
console = Console(stderr=True, highlight=False)


def main(
    deploy: Annotated[str, typer.Argument(help="the deploy file")] = "deploys/spark.py",
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    dry: Annotated[bool, typer.Option(help="change nothing; exit 2 when a host differs from the fleet file")] = False,
) -> None:
    """Run DEPLOY over the fleet that TINDERBOX_FLEET names (default: the lab).

    Exit status: 0 all hosts are as they should be; 1 a host failed; 2 the fleet file or the limit was refused, or, in a
    dry run, a host differs; 130 interrupted.
    """
    limits = [name for value in limit or [] for name in value.split(",") if name]
    try:
        fleet = load_fleet()
    except FleetError as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        raise typer.Exit(_REFUSED) from error
    groups = {"all", "inventory", *(group for host in fleet.hosts.values() for group in host.groups)}
    nothing = unmatched(limits, fleet.hosts, groups)
    if nothing:
        known = ", ".join(sorted(fleet.hosts))
        console.print(f"{fleet.path}: no host or group matches {', '.join(nothing)}; hosts are: {known}", style="red")
        raise typer.Exit(_REFUSED)
    if not Path(deploy).is_file():
        console.print(f"no such deploy file: {deploy}; see deploys/", style="red")
        raise typer.Exit(_REFUSED)
    raise typer.Exit(_report(run_pyinfra(deploy, limits=limits, dry=dry), dry=dry))


def _report(finished: Finished, *, dry: bool) -> int:
    if finished.status == _INTERRUPTED:
        console.print("interrupted; jobs that run on hosts go on, and the next run picks them up", style="yellow")
        return _INTERRUPTED
    try:
        outcome = parse_outcome(finished.results, dry=dry)
    except NoResultsError:
        console.print(f"no host was brought to its end ({finished.seconds:.1f} s); the cause stands above", style="red")
        return finished.status or 1
    for line, style in summary(outcome, dry=dry):
        console.print(line, style=style, markup=False, soft_wrap=True)
    console.print(f"{finished.seconds:.1f} s", style="dim")
    if outcome.failed or finished.status != 0:
        return finished.status or 1
    return _DIFFERS if dry and outcome.changed else 0


def summary(outcome: Outcome, *, dry: bool) -> list[tuple[str, str]]:
    """The lines, with their style, that tell what a run did."""
    lines = [
        (f"{host}: FAILED at {names[0]}" if names else f"{host}: FAILED before its first operation", "red")
        for host, names in sorted(outcome.failed.items())
    ]
    verb = "would change" if dry else "changed"
    lines += [
        (f"{host}: {verb} {len(names)}: {', '.join(names)}", "yellow")
        for host, names in sorted(outcome.changed.items())
    ]
    if not outcome.changed and not outcome.failed:
        lines.append((f"no change on any host ({outcome.operations} operations)", "green"))
    return lines


if __name__ == "__main__":
    typer.run(main)
