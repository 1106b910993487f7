"""What watches this host, brought about and undone: exporter, node exporter, Prometheus, Grafana.

    monitoring_settings.py check|apply < WISH

WISH, as JSON: `exporter`, `node_exporter`, `grafana` (booleans), `prometheus`: null, or `digest` of its configuration
(for `check`), and its `files`: name → text (for `apply`); `asked_at`: URL at which node exporter answers. Units,
drop-ins and settings are placed, or taken away, before, and packages installed in between. `check` prints as JSON what
is not as wished (`differences`), which packages are not installed (`missing`), and which were there before Tinderbox
and are not its to change (`foreign`). `apply` has it so; a configuration is put in force only after promtool has
checked it. Exit status of `apply`: 0 done, 1 not (reason on standard error).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import settings_program
    from modules.hostside.monitoring_units import Watcher, answers, is_ours, is_outdated, missing, reload_units, started
    from modules.hostside.prometheus_files import CheckError, in_force, publish, withdraw
    from modules.hostside.settings_program import Change
    from modules.hostside.system_host import System
else:
    import settings_program
    from monitoring_units import Watcher, answers, is_ours, is_outdated, missing, reload_units, started
    from prometheus_files import CheckError, in_force, publish, withdraw
    from settings_program import Change
    from system_host import System

EXPORTER = Watcher("exporter", "tinderbox-exporter.service", package=None)
NODE_EXPORTER = Watcher("node_exporter", "prometheus-node-exporter.service", package="prometheus-node-exporter")
PROMETHEUS = Watcher("prometheus", "prometheus.service", package="prometheus")
GRAFANA = Watcher("grafana", "tinderbox-grafana.service", package=None)
WATCHERS = (EXPORTER, NODE_EXPORTER, PROMETHEUS, GRAFANA)


def _units(system: System, _: dict[str, Any]) -> Iterator[Change]:
    changed = [one.unit for one in WATCHERS if system.shown(one.unit, "NeedDaemonReload") == "yes"]
    if changed:
        yield f"systemd has not read what changed of {', '.join(changed)}", lambda: reload_units(system)


def _running(system: System, wish: dict[str, Any]) -> Iterator[Change]:
    """Each that is wished runs with the files that it has now; each that is not wished any more is undone."""
    for one in (EXPORTER, NODE_EXPORTER, GRAFANA):
        kept = system.kept().get(one.note)
        if wish[one.name] and is_outdated(system, one):
            yield f"{one.unit} does not run with what it is told now", lambda one=one: started(system, one)  # type: ignore[misc]
        elif wish[one.name] and system.shown(one.unit, "ActiveState") != "active":
            yield f"{one.unit} does not run", lambda one=one: started(system, one)  # type: ignore[misc]
        elif not wish[one.name] and kept is not None:
            yield f"{one.unit} is still there", lambda one=one: one.undo(system)  # type: ignore[misc]


def _prometheus(system: System, wish: dict[str, Any]) -> Iterator[Change]:
    wanted, one = wish["prometheus"], PROMETHEUS
    kept = system.kept().get(one.note)
    if wanted is None:
        if kept is not None or in_force() is not None:

            def away() -> None:
                one.undo(system)
                withdraw()

            yield f"{one.unit} is still there", away
        return
    if in_force() != wanted["digest"]:

        def put() -> None:
            publish(wanted["files"])
            # Without the process a reload would fail; it is started with the new one next.
            if system.shown(one.unit, "ActiveState") == "active" and not is_outdated(system, one):
                system.must("systemctl", "reload", one.unit)

        yield "Prometheus has another configuration", put
    if is_outdated(system, one) or system.shown(one.unit, "ActiveState") != "active":
        yield f"{one.unit} does not run with what it is told now", lambda: started(system, one)


def _answering(system: System, wish: dict[str, Any]) -> Iterator[Change]:
    """Only after a start: what the exporter writes comes out where Prometheus asks."""
    url = wish.get("asked_at")
    if url and wish.get("started"):
        yield "what the exporters tell is asked for once", lambda: answers(url)


SETTINGS = (_units, _running, _prometheus)


def check(system: System, wish: dict[str, Any]) -> dict[str, list[str]]:
    """What is not as wished."""
    wanted = [one for one in WATCHERS if wish[one.name]]
    return {
        "differences": settings_program.differences(SETTINGS, system, wish),
        "missing": [one.package for one in wanted if one.package and missing(system, one.package)],
        "foreign": [one.package for one in wanted if one.package and not is_ours(system, one)],
    }


def apply(system: System, wish: dict[str, Any]) -> list[str]:
    """Have all of it as wished. Returns what went wrong."""
    return settings_program.applied((*SETTINGS, _answering), system, wish, (CheckError,))


def main(arguments: list[str]) -> int:
    """Entry point."""
    return settings_program.main(arguments, __doc__, check, apply)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
