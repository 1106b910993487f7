"""The report of the fleet, written on the controller once all hosts were asked."""

from __future__ import annotations

import os
from collections.abc import Generator

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.report import ReportState
from modules.fleet import FleetError, HostPlan, ServicePlan, load_fleet
from modules.release import layout
from modules.reporting.baselines import BaselineError
from modules.reporting.gathered import note_seen
from modules.reporting.host_errors import errors_here
from modules.reporting.page.write import collected, report_folder, write_all
from modules.reporting.silent import NO_PROGRAM, note_silent, note_trouble

_asked: set[str] = set()


def gather(plan: HostPlan) -> None:
    """Ask the host, and keep what it tells on the controller; while the run is prepared, so in a dry run, too."""
    seen = host.get_fact(ReportState, services={one.name: _wish(plan, one) for one in plan.services})
    fleet = load_fleet()
    try:
        if seen is not None:
            note_seen(fleet.name, plan, seen)
            _asked.add(host.name)
        elif host.name not in errors_here():
            logger.warning("%s: %s", host.name, NO_PROGRAM)
            note_trouble(fleet.name, host.name, NO_PROGRAM)
            _asked.add(host.name)
    except OSError as error:
        # An exception would end the run of every host.
        logger.error("%s: the controller could not keep what the host told: %s", host.name, error)


def _wish(plan: HostPlan, service: ServicePlan) -> dict[str, str | None]:
    directory = layout.model_directory(plan.settings.weights.home, service.model.repository)
    return {"model": directory, "file": service.model.file}


@operation()
def report_written() -> Generator[PyinfraCommand, None, None]:
    """Write `reports/<fleet>/`. To be run once, after `gather` on every host."""
    yield FunctionCommand(_write, (), {})


def _write(state: State, host: Host) -> bool:
    """As pyinfra calls it; an error is this host's alone. Hosts that were lost on the way are noted as silent."""
    asked = {one.name for one in state.inventory if state.is_host_in_limit(one)}
    try:
        fleet = load_fleet()
        note_silent(fleet, sorted(asked - _asked), errors_here())
        report = collected()
        written = write_all(report, report_folder(report.fleet))
    except (OSError, FleetError, BaselineError) as error:
        host.log(f"the report can not be written: {error}", log_func=logger.error)
        return False
    host.log(f"report: {os.path.relpath(written['index.html'])}")
    return True
