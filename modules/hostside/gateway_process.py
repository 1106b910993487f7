"""HAProxy as a program and as a unit: is it there, what does it say of a file, does it run what it should."""

from __future__ import annotations

import hashlib
import re
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.service_unit import journal, unit_state
else:
    from service_unit import journal, unit_state

PROGRAM = Path("/usr/sbin/haproxy")
SOCKET = Path("/run/tinderbox-gateway/admin.sock")
USUAL = "haproxy.service"
USUAL_CONFIGURATION = Path("/etc/haproxy/haproxy.cfg")
_RELOAD_S, _PAUSE_S = 15.0, 0.1
_SHOWN = 8


class GatewayError(Exception):
    """It could not be done; the text says what to do."""


def ask(*command: str) -> tuple[int, str]:
    """Exit status and all that a program said."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout.strip()


def worker() -> str | None:
    """The process id of the HAProxy that serves; None where none answers at its socket."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(2)
            asking.connect(str(SOCKET))
            asking.sendall(b"show info\n")
            told = b"".join(iter(lambda: asking.recv(65536), b"")).decode("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r"^Pid: (\d+)$", told, re.MULTILINE)
    return found[1] if found else None


class Process:
    """The program and its unit. What it is made with differs only in tests."""

    def __init__(
        self,
        ask: Callable[..., tuple[int, str]] = ask,
        worker: Callable[[], str | None] = worker,
        program: Path = PROGRAM,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.ask, self.worker, self.program, self.sleep = ask, worker, program, sleep

    def must(self, *command: str) -> None:
        """Run a program that has to succeed."""
        code, said = self.ask(*command)
        if code != 0:
            raise GatewayError(f"{' '.join(command)} ended with exit status {code}: {said}")

    def is_installed(self) -> bool:
        """Whether the program is on this host."""
        return self.program.exists()

    def complaint(self, configuration: Path) -> str | None:
        """What HAProxy has against a file; None where nothing."""
        code, said = self.ask(str(self.program), "-c", "-q", "-f", str(configuration))
        lines = [line for line in said.splitlines() if "[ALERT]" in line]
        return None if code == 0 else "; ".join(lines[:_SHOWN]) or said or f"exit status {code}"

    def differences(self, unit: str) -> list[str]:
        """What of a unit is not as it should be, in words."""
        state = unit_state(unit)
        active = state.get("ActiveState")
        told = [] if active in {"active", "reloading"} else [f"its unit is {active}"]
        told += [] if state.get("UnitFileState") == "enabled" else ["its unit is not enabled"]
        return told + (["systemd has not read its unit"] if state.get("NeedDaemonReload") == "yes" else [])

    def read_units(self, enabled: str | None) -> None:
        """Have systemd read its units anew, and enable one."""
        self.must("systemctl", "daemon-reload")
        if enabled is not None:
            self.must("systemctl", "enable", "--quiet", enabled)

    def run(self, unit: str, *, fresh: bool) -> None:
        """Have it run with the files that lie there; `fresh`: it has read them. Raises `GatewayError`."""
        if unit_state(unit).get("ActiveState") != "active":
            self.ask("systemctl", "reset-failed", unit)
            code, said = self.ask("systemctl", "start", unit)
            if code != 0:
                raise GatewayError(f"the gateway does not start: {'; '.join(self._log(unit)) or said}")
            return
        if fresh:
            return
        before = self.worker()
        code, said = self.ask("systemctl", "reload", unit)
        deadline = time.monotonic() + _RELOAD_S
        while code == 0 and self.worker() in {before, None}:
            if time.monotonic() > deadline:
                code, said = 1, "no new process took over"
            self.sleep(_PAUSE_S)
        if code != 0:
            told = "; ".join(self._log(unit)) or said
            raise GatewayError(f"the gateway did not take the new configuration, and goes on with the former: {told}")

    def _log(self, unit: str) -> list[str]:
        return [line for line in journal(unit, lines=40) if "[ALERT]" in line][-_SHOWN:]

    def end(self, unit: str) -> None:
        """Stop it, over a boot, too."""
        if unit_state(unit).get("ActiveState") not in {None, "inactive"} or self.ask("systemctl", "cat", unit)[0] == 0:
            self.ask("systemctl", "disable", "--quiet", "--now", unit)
            self.ask("systemctl", "reset-failed", unit)

    def purge(self, packages: Sequence[str]) -> None:
        """Have packages gone that came for this; of those that something else needs by now, only HAProxy."""
        _, planned = self.ask("apt-get", "-s", "purge", *packages)
        gone = set(re.findall(r"^(?:Purg|Remv) (\S+)", planned, re.MULTILINE))
        names = list(packages) if gone <= set(packages) else ["haproxy"]
        self.must("apt-get", "-y", "-o", "DPkg::Lock::Timeout=300", "purge", *names)

    def quiet_the_usual_one(self) -> None:
        """The unit that came with the package serves nothing as long as its configuration is the package's."""
        _, listed = self.ask("dpkg-query", "-W", "-f", "${Conffiles}", "haproxy")
        found = re.search(rf"^ {re.escape(str(USUAL_CONFIGURATION))} ([0-9a-f]{{32}})", listed, re.MULTILINE)
        try:
            # Not for security: it is how dpkg tells whether a file was edited.
            now = hashlib.md5(USUAL_CONFIGURATION.read_bytes(), usedforsecurity=False).hexdigest()
        except OSError:
            return
        if found is not None and found[1] == now and unit_state(USUAL).get("UnitFileState") == "enabled":
            self.ask("systemctl", "disable", "--quiet", "--now", USUAL)
