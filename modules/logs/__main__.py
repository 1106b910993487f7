"""`python -m modules.logs`: what the services of one or several fleets log, of all hosts, in the order of time."""

from __future__ import annotations

from modules.converge.early import heed

# isort: split
import os
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from modules.asking.connections import Connections
from modules.asking.fleets import RefusedError, fleets_of, hosts_of
from modules.converge.program import start_and_leave
from modules.fleet import Fleet, FleetError
from modules.fleet.at_hand import secrets_at_hand
from modules.logs.follow import Host, Logs
from modules.logs.line import COLOURS, Entry, shown, units_of
from modules.logs.reader import Wish
from modules.logs.since import SinceError, since_of

UNREAD, INTERRUPTED = 3, 130


def main(  # noqa: PLR0917
    fleet: Annotated[list[Path] | None, typer.Argument(help="fleet files; default: what TINDERBOX_FLEET names")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on, until Ctrl-C")] = False,
    since: Annotated[str | None, typer.Option(help="10m, 2h, 3d, 21:30, today, 2026-11-30T21:30")] = None,
    lines: Annotated[int, typer.Option(min=0, help="without --since: the newest so many of each host")] = 50,
    service: Annotated[list[str] | None, typer.Option(help="only these services; may repeat")] = None,
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    grep: Annotated[str | None, typer.Option(help="only entries in which this regular expression is found")] = None,
    patience: Annotated[float, typer.Option(min=0.1, help="seconds until a host that says nothing is unknown")] = 3.0,
) -> None:
    """Show what services, their watchdogs and what keeps clusters together log. Changes nothing; secrets are masked.

    Exit status: 0 all of it was shown; 1 a fleet file, the limit or an option was refused; 3 a host could not be read;
    130 Ctrl-C.
    """
    heed()
    try:
        fleets = fleets_of(fleet or ())
        hosts = _hosts(fleets, hosts_of(fleets, limit or []), service or [], patience)
        begin = None if since is None else since_of(since, datetime.now().astimezone())
        pattern = None if grep is None else re.compile(grep)
    except (FleetError, RefusedError, SinceError, re.error) as error:
        _tell(f"--grep is no regular expression: {error}" if isinstance(error, re.error) else str(error))
        raise typer.Exit(1) from error
    logs = Logs(hosts, Wish((), follow, lines, begin), _Shower(hosts), _tell, pattern)
    try:
        logs.run()
    except KeyboardInterrupt:
        for connections in {id(host.connections): host.connections for host in hosts}.values():
            connections.close_all()
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read it has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if logs.unread:
        raise typer.Exit(UNREAD)


def _hosts(fleets: list[Fleet], names: list[list[str]], wanted: list[str], patience_s: float) -> list[Host]:
    """Those that have any of the services. Raises `RefusedError`: none has one of these."""
    known = {name for fleet in fleets for host in fleet.hosts.values() for name in host.settings.services}
    for name in wanted:
        if name not in known:
            raise RefusedError(f"no host has a service {name}; services are: {', '.join(sorted(known)) or 'none'}")
    found: list[Host] = []
    for fleet, within in zip(fleets, names, strict=True):
        connections = Connections(fleet, (fleet.hosts[name] for name in within), patience_s)
        secrets = tuple(secrets_at_hand(fleet))
        for name in within:
            services = tuple(one for one in fleet.hosts[name].settings.services if not wanted or one in wanted)
            if services:
                source = name if len(fleets) == 1 else f"{fleet.name}/{name}"
                found.append(Host(connections, name, source, services, secrets))
    if not found:
        raise RefusedError("none of these hosts has such a service")
    return found


class _Shower:
    """Prints entries; each host has its colour on a terminal, and none elsewhere."""

    def __init__(self, hosts: list[Host]) -> None:
        on_terminal = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._colours = {
            host.source: COLOURS[at % len(COLOURS)] if on_terminal else None for at, host in enumerate(hosts)
        }
        self._width = max(
            len(f"{host.source} {part}")
            for host in hosts
            for unit, part in units_of(host.services).items()
            if "@" not in unit
        )

    def __call__(self, entry: Entry) -> None:
        sys.stdout.write(shown(entry, self._width, self._colours[entry.source]) + "\n")
        sys.stdout.flush()


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    start_and_leave(main)
