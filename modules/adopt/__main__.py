"""`python -m modules.adopt`: servers that already run as a fleet file, and with consent as services of Tinderbox."""

from __future__ import annotations

from modules.converge.early import heed

# isort: split
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from modules.adopt.render import with_found
from modules.converge.__main__ import main as converge
from modules.converge.asked import asked_fleet, refused
from modules.converge.limits import hosts_within, names_of
from modules.converge.process import INTERRUPTED, run_pyinfra
from modules.converge.program import start
from modules.converge.tell import say
from modules.fleet import Fleet
from modules.fleet.problem import shown
from modules.operations.asked import ADOPT, ADOPT_FOUND

DEPLOY = "deploys/adopt.py"
_FAILED, _UNKNOWN = 1, 3


def main(
    out: Annotated[Path | None, typer.Option(help="the fleet file to write; never over one that is there")] = None,
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    *,
    take: Annotated[
        bool, typer.Option(help="take over the servers whose places the fleet file's services have")
    ] = False,
    undo: Annotated[bool, typer.Option(help="have the servers back that were taken over")] = False,
    consent: Annotated[bool, typer.Option(help="do not ask; without it, and without a terminal: only look")] = False,
) -> None:
    """Describe what runs on the hosts of the fleet that TINDERBOX_FLEET names; it changes nothing by that.

    Exit status: 0 done; 1 refused, failed, or nothing was found; 3 a host could not be looked at; 130 interrupted.
    With --take and --undo as `python -m modules.converge`.
    """
    heed()
    given = limit or []
    if take and undo:
        raise refused("--take and --undo: choose one")
    if take or undo:
        os.environ[ADOPT] = "take" if take else "undo"
        asks = not consent and sys.stdin.isatty()
        converge(DEPLOY, given, drift=not consent and not asks, confirm=asks)
        return
    fleet = asked_fleet(given)
    problem = _misplaced(out, fleet)
    if problem is not None:
        raise refused(problem)
    raise typer.Exit(_described(fleet, names_of(given), out))


def _misplaced(out: Path | None, fleet: Fleet) -> str | None:
    if out is None:
        return None
    if out.exists():
        return f"{out} is there: name another file, or remove it"
    if out.absolute().parent.resolve() != fleet.path.parent.resolve():
        return f"{out}: write it beside {shown(fleet.path)}, since paths in a fleet file count from its folder"
    return None


def _described(fleet: Fleet, limits: list[str], out: Path | None) -> int:
    with tempfile.TemporaryDirectory(prefix="tinderbox-") as folder:
        os.environ[ADOPT_FOUND] = folder
        ended = run_pyinfra(DEPLOY, limits=limits, dry=True)
        hosts = hosts_within(limits, fleet)
        files = {host: Path(folder, f"{host}.json") for host in hosts}
        found: dict[str, Any] = {host: json.loads(path.read_text()) for host, path in files.items() if path.exists()}
    if ended.status == INTERRUPTED:
        # Who was not asked any more is not unknown.
        say("interrupted; nothing was written", "yellow")
        return INTERRUPTED
    silent = [host for host in hosts if host not in found]
    for host in silent:
        say(f"{host}: unknown: it could not be looked at; the lines above say why", "yellow")
    told = [line for host in found for line in found[host]["lines"]]
    for line in told:
        say(line, "")
    if not any("services" in one["settings"] for one in found.values()):
        if found:
            where = f" on {', '.join(found)}" if silent else ""
            say(f"nothing that could be a service was found{where}", "yellow")
        return _UNKNOWN if silent else _FAILED
    text = with_found(yaml.safe_load(fleet.path.read_text(encoding="utf-8")), found, told)
    if out is None:
        typer.echo(text, nl=False)
    else:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise refused(f"{out}: {error.strerror}; name a file that you may write") from error
        say(f"{out} is written; see and change it, then: make adopt FLEET={out} TAKE=1", "green")
    return _UNKNOWN if silent else 0


if __name__ == "__main__":
    start(main)
