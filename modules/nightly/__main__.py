"""`python -m modules.nightly`: drift, gate and report of a fleet, once; what the nightly timer starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from modules.converge.program import start
from modules.fleet import FleetError, load_fleet
from modules.hostside.atomic import write_json, write_text
from modules.nightly.outcome import Night

ROOT = Path(__file__).resolve().parents[2]
_INTERRUPTED, _GRACE_S = 130, 10


def main(
    gate: Annotated[bool, typer.Option(help="measure every service, too")] = True,
    metrics: Annotated[Path | None, typer.Option(help="folder of node exporter's textfile collector")] = None,
    deploy: Annotated[str, typer.Option(help="the deploy file whose drift is looked for")] = "deploys/spark.py",
) -> None:
    """Look for drift of the fleet that TINDERBOX_FLEET names, hold it to its gates, and write the report.

    Writes reports/FLEET/nightly/: drift.json and last.json. Exit status: 0 all is as it should be; else that of the
    drift check (see modules.converge), or of the gate.
    """
    try:
        fleet = load_fleet()
    except FleetError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    folder = ROOT / "reports" / fleet.name / "nightly"
    folder.mkdir(parents=True, exist_ok=True)
    started = time.time()
    drift_status, told = _ran("modules.converge", deploy, "--drift", "--json")
    gate_status = _ran("modules.converge", "deploys/measure.py")[0] if gate and drift_status != _INTERRUPTED else None
    # Its own status is that of hosts that can not be asked, which drift has told.
    _ran("modules.reporting")
    night = Night(fleet.name, started, time.time(), drift_status, gate_status, _document(told))
    if night.drift is not None:
        write_json(folder / "drift.json", dict(night.drift))
    write_json(folder / "last.json", night.document())
    if metrics is not None:
        write_text(metrics / f"tinderbox_{fleet.name}.prom", night.metrics())
    typer.echo(night.line())
    raise typer.Exit(night.status)


def _ran(module: str, *words: str) -> tuple[int, str]:
    """Its status and what it wrote to standard output; what it tells people goes to the journal."""
    environment = {**os.environ, "PYINFRA_PROGRESS": "off"}
    argv = [sys.executable, "-m", module, *words]
    with subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as child:
        try:
            told, _ = child.communicate()
        except KeyboardInterrupt:
            # systemd asks this process alone to leave; what it runs knows how to.
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=_GRACE_S)
            raise typer.Exit(_INTERRUPTED) from None
    return (child.returncode if child.returncode >= 0 else 128 - child.returncode), told


def _document(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("hosts"), dict) else None


if __name__ == "__main__":
    start(main)
