"""What a Prometheus and a Grafana of the site need to watch the fleet: `python -m modules.monitoring export FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from modules.catalog import load_catalog
from modules.fleet import Fleet, FleetError, load_fleet
from modules.fleet.problem import shown
from modules.hostside.atomic import write_text
from modules.monitoring.configuration import RULES, TARGETS, site_files
from modules.monitoring.grafana import dashboard_texts
from modules.monitoring.targets import watched
from modules.spec.monitoring import Alerts

program = typer.Typer(add_completion=False, help=__doc__)


@program.callback()
def _program() -> None:
    """Keep `export` a word of its own."""


@program.command()
def export(
    folder: Annotated[Path, typer.Argument(help="where the files go; the site's Prometheus reads them there")],
) -> None:
    """Write targets (file_sd), rules and dashboards of the fleet into FOLDER; connects to no host."""
    try:
        fleet = load_fleet()
    except FleetError as error:
        sys.exit(str(error))
    seen = watched(fleet, load_catalog(), by=None)
    if not seen.hosts:
        sys.exit(
            f"{shown(fleet.path)}: no host has monitoring.existing_prometheus and exporters; "
            "add existing_prometheus: true under defaults.monitoring"
        )
    # As Prometheus is told of it: it looks for relative paths beside its own configuration.
    folder = folder.absolute()
    files = site_files(seen, _alerts(fleet)) | {
        f"dashboards/{name}": text for name, text in dashboard_texts(seen).items()
    }
    try:
        (folder / "dashboards").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_text(folder / name, text)
    except OSError as error:
        sys.exit(f"{folder}: {error.strerror}; name a folder that you may write to")
    typer.echo(
        f"{len(seen.hosts)} host(s) of fleet {fleet.name}. In prometheus.yml: rule_files: [{folder / RULES}],\n"
        f"and a job with honor_labels: true and file_sd_configs: [{{files: [{folder / TARGETS}]}}].\n"
        f"Dashboards for Grafana: {folder / 'dashboards'}"
    )


def _alerts(fleet: Fleet) -> Alerts:
    """What all its hosts agree on; the rules are the fleet's and not a host's."""
    wishes = {
        host.name: host.settings.monitoring.alerts
        for host in fleet.hosts.values()
        if host.settings.monitoring.existing_prometheus
    }
    if len(set(wishes.values())) > 1:
        what = f"monitoring.alerts differ between {', '.join(wishes)}"
        sys.exit(f"{shown(fleet.path)}: {what}; write them once, under defaults")
    return next(iter(wishes.values()))


if __name__ == "__main__":
    program()
