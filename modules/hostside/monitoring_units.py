"""Units of what watches this host: whose they are, with which files they run, and how they go again."""

from __future__ import annotations

import hashlib
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.system_host import SettingError, System
else:
    from atomic import read_json, write_json
    from system_host import SettingError, System

# Programs of the exporter, whose change wants a restart of it.
_PROGRAMS = (
    "export_metrics", "exposition", "gpu_metrics", "host_metrics",
    "drift_metrics", "service_metrics", "release_story", "ledger",
    "service_unit", "atomic", "api_key",
)  # fmt: skip
_SETTINGS = Path("/etc/tinderbox/monitoring.json")
_MARK = "tinderbox_collected_timestamp_seconds"
_PATIENCE_S = 30


@dataclass(frozen=True)
class Watcher:
    """One unit. `package`: of the distribution, that brings it; None: the unit is our own."""

    name: str
    unit: str
    package: str | None

    @property
    def note(self) -> str:
        """Under which it is noted what it was started with, in what Tinderbox keeps of this host."""
        return f"monitoring {self.name}"

    def files(self, system: System) -> list[Path]:
        """What it was started with."""
        own = system.units / self.unit
        found = [own, *sorted((system.units / f"{self.unit}.d").glob("*.conf"))]
        if self.name == "exporter":
            found += [_SETTINGS, *(Path(__file__).with_name(f"{program}.py") for program in _PROGRAMS)]
        if self.name == "grafana":
            found += sorted(path for path in Path("/etc/tinderbox/grafana").rglob("*") if path.is_file())
        return found

    def undo(self, system: System) -> None:
        """Stop it, and take away what was installed for it. What Prometheus has stored stays."""
        system.ask("systemctl", "stop", self.unit)
        for wanted in system.units.glob(f"*.wants/{self.unit}"):
            wanted.unlink()
        with suppress(OSError):
            # Of drop-ins, where nobody else has one there.
            (system.units / f"{self.unit}.d").rmdir()
        if self.package is not None and self.package in _added(system, self.package):
            system.must("apt-get", "-y", "-o", "DPkg::Lock::Timeout=300", "remove", self.package)
            packages = read_json(system.undo / "packages.json") or {}
            write_json(
                system.undo / "packages.json", {key: value for key, value in packages.items() if key != self.package}
            )
        system.ask("systemctl", "reset-failed", self.unit)
        system.forget(self.note)


def runs_with(system: System, one: Watcher) -> str:
    """A hash of the files with which it is to run."""
    digest = hashlib.sha256()
    for path in one.files(system):
        try:
            digest.update(path.read_bytes())
        except OSError:
            digest.update(b"-")
        digest.update(b"\0")
    return digest.hexdigest()


def is_outdated(system: System, one: Watcher) -> bool:
    """Whether it was not started with the files that it has now, as far as noted, or by their times.

    Someone may have edited a file, and started it with that: put back, the file is as it was noted again.
    """
    if system.kept().get(one.note) != runs_with(system, one):
        return True
    since = system.shown(one.unit, "ActiveEnterTimestampMonotonic")
    if not since.isdigit() or since == "0":
        return False
    now = time.time()
    began = now - time.monotonic() + int(since) / 1e6
    # A clock that was set may have left times that are yet to come.
    return any(began < path.stat().st_mtime <= now for path in one.files(system) if path.exists())


def started(system: System, one: Watcher) -> None:
    """Start it anew, and see that it stays."""
    if one.name == "exporter":
        # Left as it is where it is there: others may have been let in, to leave textfiles of theirs.
        Path(str((read_json(_SETTINGS) or {}).get("file"))).parent.mkdir(parents=True, exist_ok=True)
    system.must("systemctl", "enable", "--quiet", one.unit)
    system.ask("systemctl", "reset-failed", one.unit)
    system.must("systemctl", "restart", one.unit)
    give_up = time.monotonic() + _PATIENCE_S
    alive = 0
    while alive < 3:
        if time.monotonic() > give_up:
            said = system.ask("journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=5", f"--unit={one.unit}")[
                1
            ]
            raise SettingError(f"{one.unit} does not stay up; its last words: {said}")
        # One whose port is taken ends a moment after its start.
        alive = alive + 1 if system.shown(one.unit, "ActiveState") == "active" else 0
        time.sleep(0.5)
    system.note(one.note, runs_with(system, one))


def reload_units(system: System) -> None:
    """Have systemd know of the files that were placed or taken away."""
    system.must("systemctl", "daemon-reload")


def answers(url: str) -> None:
    """See that what the exporter writes is told at node exporter's address. Raises `SettingError`."""
    give_up, said = time.monotonic() + _PATIENCE_S, "nothing"
    while time.monotonic() < give_up:
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=5) as answer:
                if f"\n{_MARK} " in answer.read().decode("utf-8", errors="replace"):
                    return
                said = f"no {_MARK} (journalctl -u tinderbox-exporter)"
        except OSError as error:
            said = str(error)
        time.sleep(1)
    raise SettingError(f"{url} tells {said}")


def missing(system: System, package: str) -> bool:
    """Whether a package is not installed whole."""
    code, said = system.ask("dpkg-query", "-W", "-f", "${db:Status-Status}", package)
    return code != 0 or said != "installed"


def is_ours(system: System, one: Watcher) -> bool:
    """Whether what is there of it is Tinderbox's to change: it is not there, or came by Tinderbox."""
    package = str(one.package)
    if missing(system, package):
        return True
    return one.note in system.kept() or package in _added(system, package)


def _added(system: System, package: str) -> list[str]:
    entry = (read_json(system.undo / "packages.json") or {}).get(package)
    added = entry.get("added", []) if isinstance(entry, dict) else []
    return [str(name) for name in added]
