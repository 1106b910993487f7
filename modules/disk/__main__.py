"""`python -m modules.disk`: what uses the hosts' disks, and what would free how much."""

from __future__ import annotations

from modules.converge.early import heed

# isort: split
import json
import os
from typing import Annotated

import typer

from modules.converge.asked import asked_fleet, refused
from modules.converge.limits import hosts_within, names_of
from modules.converge.process import INTERRUPTED, run_pyinfra
from modules.converge.program import start
from modules.converge.tell import say
from modules.disk.told import told_of
from modules.operations.asked import JSON, REPAIR

_DEPLOY = "deploys/disk.py"
_FAILED, _UNKNOWN = 1, 3


def main(
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON on stdout, too: one line a host")] = False,
    repair: Annotated[str, typer.Option(help="owner: give users what is root's in their Hugging Face caches")] = "",
) -> None:
    """Look at the disks of the fleet that TINDERBOX_FLEET names (default: the lab).

    Exit status: 0 each host was looked at; 1 the fleet file, the limit or an option was refused, or a repair failed;
    3 a host is unknown: it was not reached, or could not be looked at; 130 interrupted.
    """
    heed()
    if repair not in {"", "owner"}:
        raise refused(f"--repair {repair}: write owner, the only thing that is repaired")
    fleet = asked_fleet(limit)
    limits = names_of(limit or [])
    # As JSON in any case: it says which hosts have answered.
    os.environ.update({JSON: "1", REPAIR: repair})
    ended = run_pyinfra(_DEPLOY, limits=limits, dry=not repair)
    if ended.status == INTERRUPTED:
        say(ended.left.text(), "yellow")
        raise typer.Exit(INTERRUPTED)
    found = told_of(ended.results)
    unknown = [host for host in hosts_within(limits, fleet) if host not in found]
    if as_json:
        for one in [*found.values(), *({"host": host, "answers": False} for host in unknown)]:
            typer.echo(json.dumps(one))
    for host in unknown:
        say(f"{host}: unknown: its disks could not be looked at; the lines above say why", "yellow")
    raise typer.Exit(_UNKNOWN if unknown else _FAILED if ended.status or ended.errors else 0)


if __name__ == "__main__":
    start(main)
