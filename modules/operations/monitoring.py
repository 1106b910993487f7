"""What watches a host: exporters, Prometheus, Grafana."""

from __future__ import annotations

import json
from collections.abc import Generator

from pyinfra import host, logger
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.monitoring import PROGRAM, Monitoring, MonitoringState
from modules.facts.survey import Question
from modules.monitoring.plan import WatchPlan
from modules.operations.apt import install_job
from modules.operations.differences import differs, files_differ
from modules.operations.job import run_job
from modules.operations.managed_files import ManagedFile, settle, unsettled
from modules.operations.require import foreseen, unreadable
from modules.release import layout

_FOREIGN = {
    "prometheus-node-exporter": "leave it, and set monitoring.exporters.node_exporter: false and "
    "textfile_directory: the one that it reads (--collector.textfile.directory)",
    "prometheus": "leave it, and set monitoring.existing_prometheus: true in place of monitoring.prometheus; "
    "`python -m modules.monitoring export` gives it targets, rules and dashboards",
}


def managed(plan: WatchPlan) -> list[ManagedFile]:
    """The plan's files."""
    return [ManagedFile(path, text, "600" if path in plan.secret_files else "644") for path, text in plan.files.items()]


def watch_there(plan: WatchPlan) -> Question[MonitoringState]:
    """How the host stands to what is wished."""
    return Question(Monitoring, {"paths": list(plan.files), "wish": plan.wish()})


@operation()
def watched(plan: WatchPlan) -> Generator[PyinfraCommand, None, None]:
    """Have what watches the host as the fleet file says; what that does not name any more goes.

    A node exporter or a Prometheus that was there before Tinderbox is left alone, and told of.

    + plan: all of it
    """
    found = watch_there(plan).of(host)
    if found is None:
        yield from unreadable("the state of what watches this host")
        return
    if found.foreign:
        yield _left_alone(found)
        return
    changes = unsettled(managed(plan), found.files)
    if not changes and not found.differences and not found.missing:
        host.noop("what watches this host is as the fleet file says")
        return
    for difference in found.differences:
        logger.debug("%s: %s", host.name, difference)
        differs("what watches the host", difference)
    for package in found.missing:
        differs(f"package {package}", "is not installed")
    files_differ(changes, found.files, secret=plan.secret_files)
    # Before the packages, which start what they bring: without these files on every address.
    yield from settle(changes)
    for package in found.missing:
        yield from run_job(install_job(package, "*", None))
    yield StringCommand(layout.PYTHON, PROGRAM, "apply", _stdin=json.dumps(plan.wish(whole=True)))


def _left_alone(found: MonitoringState) -> StringCommand:
    told = "; ".join(f"{package} was on this host before Tinderbox: {_FOREIGN[package]}" for package in found.foreign)
    return foreseen(f"{host.name}: {told}. Nothing was changed.")
