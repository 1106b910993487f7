"""Render what is kept of a fleet, and write it where people and programs look for it."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from modules.catalog import load_catalog
from modules.fleet import FleetError, load_fleet
from modules.reporting.baselines import BaselineError, fleet_baselines
from modules.reporting.fleet_report import fleet_report
from modules.reporting.junit import junit_xml
from modules.reporting.measured import ROOT, load_measured
from modules.reporting.page.render import render_page
from modules.reporting.prometheus import prometheus_text
from modules.reporting.record import load_host, load_record
from modules.reporting.report import FleetReport

REPORTS = Path(__file__).parents[3] / "reports"


def collected(root: Path = ROOT) -> FleetReport:
    """The report of the process's fleet, as the controller knows it now. Raises `FleetError`, `BaselineError`."""
    fleet = load_fleet()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return fleet_report(
        fleet,
        load_measured(fleet.name, root),
        lambda host, service: load_record(fleet.name, host, service, root),
        load_catalog(),
        generated=now,
        baselines=fleet_baselines(fleet.path),
        hosts=lambda host: load_host(fleet.name, host, root),
    )


def report_folder(fleet: str) -> Path:
    """Where a fleet's report lands: `reports/<fleet>`."""
    return REPORTS / fleet


def write_all(report: FleetReport, folder: Path) -> dict[str, Path]:
    """Every form of the report. Each file lands by rename, since it may be read at any moment. Raises `OSError`."""
    texts = {
        "index.html": render_page(report),
        "report.json": report.model_dump_json(indent=1) + "\n",
        "junit.xml": junit_xml(report),
        "tinderbox.prom": prometheus_text(report),
    }
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for name, text in texts.items():
        beside = folder / f".{name}.{os.getpid()}"
        try:
            beside.write_text(text, encoding="utf-8")
            written[name] = beside.replace(folder / name)
        finally:
            beside.unlink(missing_ok=True)
    return written


def main(arguments: list[str]) -> int:
    """0 also where gates failed: a report tells, and does not judge."""
    parser = argparse.ArgumentParser(prog="python -m modules.reporting.page", description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to write; without it reports/<fleet>")
    folder: Path | None = parser.parse_args(arguments).folder
    try:
        report = collected()
        written = write_all(report, folder or report_folder(report.fleet))
    except (FleetError, BaselineError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"the report can not be written: {error}\n")
        return 1
    for name, path in written.items():
        sys.stdout.write(f"{name:<16}{os.path.relpath(path)}\n")
    return 0
