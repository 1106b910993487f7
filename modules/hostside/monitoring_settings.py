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

import json
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import note_lost_gpu
    from modules.hostside.monitoring_units import Watcher, answers, is_ours, is_outdated, missing, reload_units, started
    from modules.hostside.prometheus_files import CheckError, in_force, publish, withdraw
    from modules.hostside.system_host import SettingError, System
else:
    from gpus_kept import gpus_kept
    from ledger import note_lost_gpu
    from monitoring_units import Watcher, answers, is_ours, is_outdated, missing, reload_units, started
    from prometheus_files import CheckError, in_force, publish, withdraw
    from system_host import SettingError, System

EXPORTER = Watcher("exporter", "tinderbox-exporter.service", package=None)
NODE_EXPORTER = Watcher("node_exporter", "prometheus-node-exporter.service", package="prometheus-node-exporter")
PROMETHEUS = Watcher("prometheus", "prometheus.service", package="prometheus")
GRAFANA = Watcher("grafana", "tinderbox-grafana.service", package=None)
WATCHERS = (EXPORTER, NODE_EXPORTER, PROMETHEUS, GRAFANA)

Change = tuple[str, Callable[[], None]]
"""What is not as wished, in words, and what has it so."""


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
        "differences": [what for setting in SETTINGS for what, _ in setting(system, wish)],
        "missing": [one.package for one in wanted if one.package and missing(system, one.package)],
        "foreign": [one.package for one in wanted if one.package and not is_ours(system, one)],
    }


def apply(system: System, wish: dict[str, Any]) -> list[str]:
    """Have all of it as wished; one that fails keeps none of the others back. Returns what went wrong."""
    failed: list[str] = []
    for setting in (*SETTINGS, _answering):
        try:
            for what, settle in setting(system, wish):
                print(what, flush=True)
                settle()
                wish["started"] = True
        except (SettingError, CheckError, OSError) as error:
            failed.append(str(error))
    return failed


def main(arguments: list[str]) -> int:
    """Entry point."""
    if arguments not in (["check"], ["apply"]):
        sys.stderr.write((__doc__ or "").splitlines()[2].strip() + "\n")
        return 2
    wish = json.load(sys.stdin)
    if arguments == ["check"]:
        print(json.dumps(check(System(), wish)))
        return 0
    # systemd reads its units anew for most of them.
    with gpus_kept(note_lost_gpu):
        failed = apply(System(), wish)
    sys.stderr.write("".join(f"{line}\n" for line in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
