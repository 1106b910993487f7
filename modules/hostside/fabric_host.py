"""The host as a change of the fabric's ports touches it: netplan's files, what brings them about, what was before."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import write_text
    from modules.hostside.run_program import run
else:
    from atomic import write_text
    from run_program import run

_RUN = partial(run, timeout_s=60)
_FOLDERS = ("etc/netplan", "run/netplan", "lib/netplan")

Kept = dict[str, Any]
"""Path → `{"text": ..., "mode": ...}` of a file, or None where there was none."""


class FabricError(Exception):
    """It could not be brought about; the text says what to do."""


@dataclass
class Host:
    """What it is made with differs only in tests."""

    root: Path = Path("/")
    ask: Callable[..., tuple[int, str]] = _RUN
    sleep: Callable[[float], None] = time.sleep

    def path(self, name: str) -> Path:
        """Where an absolute path is."""
        return self.root / name.lstrip("/")

    def must(self, *command: str) -> str:
        """Run a program that has to succeed."""
        code, said = self.ask(*command)
        if code != 0:
            raise FabricError(f"{' '.join(command)} ended with exit status {code}: {said}")
        return said

    def kept(self, paths: Iterable[str]) -> Kept:
        """What is at these paths."""
        found: Kept = {}
        for name in paths:
            path = self.path(name)
            there = path.is_file()
            found[name] = {"text": path.read_text(), "mode": path.stat().st_mode & 0o7777} if there else None
        return found

    def place(self, files: Mapping[str, Any]) -> None:
        """Have these files as they were kept, or gone."""
        for name, file in files.items():
            path = self.path(name)
            if file is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_text(path, file["text"], file["mode"])

    def try_out(self, files: Mapping[str, Any]) -> None:
        """Have netplan read all of the host's files, with these in their places, and write nothing to the host."""
        base = self.path("/run/tinderbox")
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=base, prefix="netplan-") as folder:
            trial = Host(Path(folder), self.ask)
            for each in _FOLDERS:
                if (self.root / each).is_dir():
                    shutil.copytree(self.root / each, trial.root / each)
            trial.place(files)
            (trial.root / "etc/netplan").mkdir(parents=True, exist_ok=True)
            code, said = self.ask("netplan", "generate", "--root-dir", folder)
        if code != 0:
            said = said.replace(folder, "")
            raise FabricError(f"netplan refuses these files, and nothing was changed: {said}")

    def activate(self, ports: Mapping[str, Any]) -> None:
        """Bring about what netplan's files say of these ports, and of no other interface."""
        self.must("netplan", "generate")
        networkd = [port for port in ports if self.path(f"/run/systemd/network/10-netplan-{port}.network").exists()]
        manager = self.path("/run/NetworkManager/system-connections")
        managed = [port for port in ports if (manager / f"netplan-{port}.nmconnection").exists()]
        if networkd:
            self.must("systemctl", "start", "systemd-networkd.service")
        if networkd or self.ask("systemctl", "is-active", "--quiet", "systemd-networkd.service")[0] == 0:
            self.must("networkctl", "reload")
        if networkd:
            self.must("networkctl", "reconfigure", *networkd)
        if managed or self.ask("systemctl", "is-active", "--quiet", "NetworkManager.service")[0] == 0:
            self.must("nmcli", "connection", "reload")
        for port in managed:
            # Without a cable it stays down until there is one, which is no fault of the file's.
            if (self.path(f"/sys/class/net/{port}/carrier")).exists() and self._has_carrier(port):
                self.must("nmcli", "--wait", "20", "connection", "up", f"netplan-{port}", "ifname", port)

    def _has_carrier(self, port: str) -> bool:
        try:
            return self.path(f"/sys/class/net/{port}/carrier").read_text().strip() == "1"
        except OSError:  # the interface is down
            return False

    def release(self, ports: Mapping[str, Any], mtus: Mapping[str, int]) -> None:
        """Take our addresses and our MTU from ports that no file of ours names any more."""
        for port, wish in ports.items():
            if not self.path(f"/sys/class/net/{port}").exists():
                continue
            self.ask("ip", "addr", "del", wish["address"], "dev", port)
            if port in mtus:
                self.ask("ip", "link", "set", port, "mtu", str(mtus[port]))

    def mtus(self, ports: Iterable[str]) -> dict[str, int]:
        """The MTU of each port that is there."""
        found = {}
        for port in ports:
            path = self.path(f"/sys/class/net/{port}/mtu")
            if path.exists():
                found[port] = int(path.read_text())
        return found

    def await_addresses(self, ports: Mapping[str, Any], seconds: float) -> list[str]:
        """Wait until each port with a carrier has its address; those that have not got it by then."""
        missing = sorted(ports)
        for _ in range(max(1, int(seconds * 4))):
            missing = [port for port in missing if not self._is_done(port, ports[port]["address"])]
            if not missing:
                break
            self.sleep(0.25)
        return missing

    def _is_done(self, port: str, address: str) -> bool:
        return f"inet {address} " in self.ask("ip", "-4", "addr", "show", "dev", port)[1] + " "


def lock_of(host: Host) -> int:
    """Wait for whoever else changes the ports, and keep others out until this process ends."""
    import fcntl

    folder = host.path("/var/lib/tinderbox/fabric")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor
