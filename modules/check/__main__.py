"""`python -m modules.check`: a verdict on each host, and what a deploy would do there. Changes nothing."""

from __future__ import annotations

from modules.converge.early import heed

# isort: split
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from modules.check.kept import CHECK_FILE, read
from modules.check.text import summary
from modules.check.verdict import document
from modules.converge.asked import asked_fleet
from modules.converge.limits import hosts_within, names_of
from modules.converge.process import INTERRUPTED, run_pyinfra
from modules.converge.program import start
from modules.converge.tell import say
from modules.fleet.problem import shown

_DEPLOY = "deploys/check.py"


def main(
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="all of it as JSON on stdout (docs/check.schema.json)")
    ] = False,
) -> None:
    """Look at the fleet that TINDERBOX_FLEET names (default: the lab).

    Exit status: 0 all hosts are ready; 2 one is blocked; 3 none is, and one is unknown: it was not reached or not
    looked at; 4 all are known, and one is slow; 1 the fleet file or the limit was refused; 130 interrupted.
    """
    heed()
    fleet = asked_fleet(limit)
    say(f"fleet {fleet.name}: {shown(fleet.path)}", "dim")
    for remark in fleet.remarks:
        say(remark.told(shown(fleet.path)), "yellow")
    limits = names_of(limit or [])
    with tempfile.TemporaryDirectory(prefix="tinderbox-check-") as folder:
        told = Path(folder) / "hosts.jsonl"
        os.environ[CHECK_FILE] = str(told)
        ended = run_pyinfra(_DEPLOY, limits=limits, dry=True)
        found = document(fleet.name, hosts_within(limits, fleet), read(told), ended.errors, ended.seconds)
    if ended.status == INTERRUPTED:
        raise typer.Exit(INTERRUPTED)
    for line, style in summary(found.hosts):
        say(line, style)
    say(f"took {found.seconds:.1f} s", "dim")
    if as_json:
        typer.echo(found.model_dump_json(by_alias=True, indent=1))
    raise typer.Exit(found.status)


if __name__ == "__main__":
    start(main)
