"""The fleet's gateway on this host: HAProxy's configuration and unit, tried before they are published.

    gateway_host.py check DIGEST UNIT_SHA256
    gateway_host.py apply < JSON
    gateway_host.py remove

The gateway is a HAProxy of its own, in unit tinderbox-gateway: HAProxy's usual unit and /etc/haproxy are their owner's
and stay as they are. Its files lie in /etc/tinderbox/gateway/<digest>/, mode 0600, and `current` links to those in
force, so that all of them change in one step. `check` prints what is not as wished, as a JSON list. `apply` reads
`files` (name → text) and `unit`; a configuration that HAProxy refuses is not published. Whoever is connected stays so
over a reload.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json, write_text
    from modules.hostside.gateway_process import GatewayError, Process
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import note_lost_gpu
else:
    from atomic import read_json, write_json, write_text
    from gateway_process import GatewayError, Process
    from gpus_kept import gpus_kept
    from ledger import note_lost_gpu

HOME = Path("/etc/tinderbox/gateway")
UNIT = "tinderbox-gateway.service"
UNIT_FILE = Path("/etc/systemd/system") / UNIT
LOADED = Path("/run/tinderbox-gateway/loaded")
UNDO = Path("/var/lib/tinderbox/undo/packages.json")
PACKAGE = "haproxy"
_CONFIGURATION = "haproxy.cfg"


def digest(files: Mapping[str, str]) -> str:
    """As modules/gateway/render.py has it."""
    found = hashlib.sha256()
    for name, text in sorted(files.items()):
        for part in (name.encode(), text.encode()):
            found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()[:12]


class Gateway:
    """The gateway's files on this host. What it is made with differs only in tests."""

    def __init__(self, process: Process, home: Path = HOME, unit: Path = UNIT_FILE, loaded: Path = LOADED) -> None:
        self.process, self.home, self.unit, self.loaded = process, home, unit, loaded

    @property
    def current(self) -> Path:
        """The link to the files in force."""
        return self.home / "current"

    def is_there(self) -> bool:
        """Whether anything of it is."""
        return self.home.exists() or self.unit.exists()

    def found(self) -> str | None:
        """The digest of what lies there; None where nothing does, or where others than root can read or write it."""
        try:
            paths = sorted(self.current.iterdir())
            if any(path.stat().st_mode & 0o077 for path in paths):
                return None
            return digest({path.name: path.read_text(encoding="utf-8") for path in paths})
        except (OSError, UnicodeDecodeError):
            return None

    def differences(self, wanted: str, unit_sha256: str) -> list[str]:
        """What is not as wished."""
        if not self.process.is_installed():
            return [f"{PACKAGE} is not installed"]
        told = [] if self.found() == wanted else ["its configuration is another one"]
        if not self.unit.exists() or hashlib.sha256(self.unit.read_bytes()).hexdigest() != unit_sha256:
            told.append("its unit is another one")
        told += self.process.differences(UNIT)
        if not told and _target(self.loaded) != _target(self.current):
            told.append("it has not read its configuration")
        return told

    def publish(self, files: Mapping[str, str]) -> None:
        """Have the files in force, once HAProxy has found them right. Raises `GatewayError`."""
        name = digest(files)
        self.home.mkdir(parents=True, exist_ok=True)
        self.home.chmod(0o700)
        fresh = self.home / f".{name}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        for file, text in files.items():
            write_text(fresh / file, text, 0o600)
        complaint = self.process.complaint(fresh / _CONFIGURATION)
        if complaint is not None:
            shutil.rmtree(fresh)
            raise GatewayError(f"HAProxy refuses the new configuration, and the former one stays in force: {complaint}")
        shutil.rmtree(self.home / name, ignore_errors=True)
        fresh.rename(self.home / name)
        self._point(name)

    def _point(self, name: str) -> None:
        link = self.home / ".current.new"
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        link.replace(self.current)

    def apply(self, files: Mapping[str, str], unit: str) -> None:
        """Have it all as wished, and running. Raises `GatewayError`."""
        former = _target(self.current)
        wanted = digest(files)
        # What has another content than its name says was edited, and may have been read so.
        as_read = self.found() == wanted == _target(self.loaded)
        if self.found() != wanted:
            self.publish(files)
        if not self.unit.exists() or self.unit.read_text(encoding="utf-8") != unit:
            write_text(self.unit, unit)
        with gpus_kept(note_lost_gpu):
            self.process.read_units(UNIT)
        try:
            self.process.run(UNIT, fresh=as_read)
        except GatewayError:
            if former not in {None, wanted} and (self.home / str(former)).is_dir():
                self._point(str(former))
            raise
        self._tidy(wanted)

    def _tidy(self, wanted: str) -> None:
        for path in self.home.iterdir():
            if path.name not in {wanted, "current"}:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

    def remove(self, undo: Path = UNDO) -> None:
        """Have nothing of it here, HAProxy neither where it came for this. The unit goes last: a cut is found again."""
        self.process.end(UNIT)
        kept = read_json(undo) or {}
        entry: Any = kept.get(PACKAGE)
        if isinstance(entry, dict):
            added = [str(name) for name in entry.get("added", [])]
            if PACKAGE in added:
                self.process.purge(added)
            write_json(undo, {name: value for name, value in kept.items() if name != PACKAGE})
        shutil.rmtree(self.home, ignore_errors=True)
        self.unit.unlink(missing_ok=True)
        with gpus_kept(note_lost_gpu):
            self.process.read_units(None)


def _target(link: Path) -> str | None:
    try:
        return link.readlink().name
    except OSError:
        return None


def came_for_this(undo: Path = UNDO) -> bool:
    """Whether HAProxy was not on this host before Tinderbox."""
    entry: Any = (read_json(undo) or {}).get(PACKAGE)
    return isinstance(entry, dict) and PACKAGE in entry.get("added", [])


def main(arguments: list[str]) -> int:
    """Entry point."""
    gateway = Gateway(Process())
    if len(arguments) == 3 and arguments[0] == "check":
        print(json.dumps(gateway.differences(arguments[1], arguments[2])))
        return 0
    if arguments not in (["apply"], ["remove"]):
        sys.stderr.write((__doc__ or "").splitlines()[2].strip() + "\n")
        return 2
    try:
        if arguments == ["remove"]:
            gateway.remove()
        else:
            if came_for_this():
                gateway.process.quiet_the_usual_one()
            wish = json.load(sys.stdin)
            gateway.apply(wish["files"], wish["unit"])
    except (GatewayError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
