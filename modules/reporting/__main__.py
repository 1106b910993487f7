"""`python -m modules.reporting`: ask every host, and write the report of the fleet to `reports/<fleet>/`.

Hosts that do not answer are shown as unknown, with why; the report is made all the same. Exit status 0 where it was
written, also when gates failed: a report tells, and does not judge.
"""

from __future__ import annotations

from modules.converge.early import in_order

# isort: split
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from modules.converge.limits import hosts_within, limit_problem, names_of
from modules.converge.process import INTERRUPTED, run_pyinfra
from modules.converge.program import start
from modules.fleet import Fleet, FleetError, load_fleet
from modules.fleet.problem import shown
from modules.reporting.baselines import BaselineError
from modules.reporting.page.write import collected, report_folder, write_all
from modules.reporting.record import load_host
from modules.reporting.share import ShareError
from modules.reporting.share.write import share_text
from modules.reporting.silent import note_silent
from modules.reporting.table import print_table
from modules.rollout.record import told

_DEPLOY = "deploys/report.py"
errors = Console(stderr=True, highlight=False)


@in_order()
def main(
    limit: Annotated[list[str] | None, typer.Option(help="ask only these hosts or groups; may repeat")] = None,
    share: Annotated[bool, typer.Option(help="print a block of the results to share, too")] = False,
) -> None:
    """Gather, write, and print the table."""
    try:
        fleet = load_fleet()
        problem = limit_problem(limit or [], fleet)
        if problem is not None:
            raise typer.Exit(_told(problem))
        errors.print(f"fleet {fleet.name}: {shown(fleet.path)}", style="dim", markup=False, soft_wrap=True)
        _gather(fleet, names_of(limit or []))
        report = collected()
        written = write_all(report, report_folder(fleet.name))
        print_table(
            fleet,
            states={f"{host.name}/{service.name}": service.state for host in report.hosts for service in host.services},
        )
        for line in told(report.rollout) if report.rollout is not None else ():
            typer.echo(line)
        for name, path in written.items():
            typer.echo(f"{name:<16}{os.path.relpath(path)}")
        for silent in (host for host in report.hosts if host.trouble is not None):
            errors.print(f"{silent.name}: {silent.trouble}", style="yellow", markup=False, soft_wrap=True)
        if share:
            _share(written["index.html"].with_name("share.txt"))
    except (FleetError, BaselineError, ShareError) as error:
        raise typer.Exit(_told(str(error))) from error
    except OSError as error:
        raise typer.Exit(_told(f"the report can not be written: {error}")) from error


def _gather(fleet: Fleet, limits: Sequence[str]) -> None:
    """Ask the hosts. Where nothing new is kept of one, the run ended before any code of ours could note its silence."""
    before = {name: load_host(fleet.name, name) for name in hosts_within(limits, fleet)}
    finished = run_pyinfra(_DEPLOY, limits=list(limits), dry=False)
    if finished.status == INTERRUPTED:
        # Who was not asked any more is not silent.
        raise KeyboardInterrupt
    silent = [name for name, record in before.items() if load_host(fleet.name, name) == record]
    note_silent(fleet, silent, finished.errors)


def _share(path: Path) -> None:
    text = share_text()
    path.write_text(text, encoding="utf-8")
    typer.echo(f"{path.name:<16}{os.path.relpath(path)}: read it before you post it\n\n{text}")


def _told(text: str) -> int:
    errors.print(text, style="red", markup=False, soft_wrap=True)
    return 1


if __name__ == "__main__":
    start(main)
