"""`python -m modules.status`: how the hosts of one or several fleets are at this moment."""

from __future__ import annotations

from modules.converge.early import heed

# isort: split
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from modules.asking.fleets import RefusedError, fleets_of, hosts_of
from modules.asking.side_by_side import ANSWER_S
from modules.converge.program import start_and_leave
from modules.fleet import FleetError
from modules.status.ask import Fleets, answers_of

INTERRUPTED = 130


def main(  # noqa: PLR0917
    fleet: Annotated[list[Path] | None, typer.Argument(help="fleet files; default: what TINDERBOX_FLEET names")] = None,
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, by docs/status.schema.json")] = False,
    watch: Annotated[float, typer.Option(min=0, help="draw it anew every so many seconds, until Ctrl-C")] = 0.0,
    patience: Annotated[float, typer.Option(min=0.1, help="seconds until a host that says nothing is unknown")] = 1.5,
    answer: Annotated[float, typer.Option(min=1, help="seconds for a host that talks to answer")] = ANSWER_S,
) -> None:
    """Ask all hosts at once, in one round trip each, and show it on one screen. Changes nothing.

    Exit status: 0 it was shown, also where hosts are unknown or services failed; 1 a fleet file or the limit was
    refused; 130 interrupted.
    """
    heed()
    try:
        fleets = fleets_of(fleet or ())
        hosts = hosts_of(fleets, limit or [])
    except (FleetError, RefusedError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        raise typer.Exit(1) from error
    asked = Fleets.of(fleets, hosts, patience)
    try:
        while True:
            _once(asked, answer, as_json=as_json, clear=watch > 0)
            if not watch:
                return
            time.sleep(watch)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _once(asked: Fleets, answer_s: float, *, as_json: bool, clear: bool) -> None:
    began = time.monotonic()
    begun = asked.begin()
    # While the hosts are asked.
    from modules.status.collect import report_of
    from modules.status.show import show

    report = report_of(asked, answers_of(begun, answer_s), began)
    if as_json:
        print(report.model_dump_json(indent=1), flush=True)  # noqa: T201
    else:
        show(report, clear=clear)


if __name__ == "__main__":
    start_and_leave(main)
