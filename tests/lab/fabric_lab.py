"""Lab hosts with netplan, networkd and QSFP cables between them, for as long as a test takes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from modules.lab import cables
from tests.lab.lab_driver import Lab, Run

# netplan.io and what the lab's hosts lack of what it depends on.
_PACKAGES = (
    "netplan.io", "libnetplan0", "libglib2.0-0", "libyaml-0-2", "python3-yaml", "python3-dbus", "python3-rich",
    "python3-netifaces", "python3-pygments", "python3-markdown-it", "python3-mdurl", "python3-pkg-resources",
)  # fmt: skip
NETPLAN = "/etc/netplan/40-cx7.yaml"
_LEFT = (
    "ip -br -4 addr | grep np; cat /sys/class/net/en*/mtu; sudo find /etc/netplan /run/systemd/network"
    " /etc/tinderbox/fabric.env /etc/security/limits.d /var/lib/tinderbox/fabric -type f 2>/dev/null | grep -v lock;"
    " ip route show default; systemctl list-timers --no-legend 'tinderbox-fabric*';"
    " ls /etc/systemd/system | grep fabric"
)


@contextmanager
def with_netplan(lab: Lab, hosts: Sequence[str], folder: Path) -> Iterator[None]:
    """While this lasts, the hosts have Debian's netplan, and networkd runs, as on a Spark without a desktop."""
    subprocess.run(["apt-get", "download", *_PACKAGES], cwd=folder, check=True, capture_output=True)
    debs = sorted(str(path) for path in folder.glob("*.deb"))
    for host in hosts:
        lab.ssh(host, "rm -rf /tmp/netplan-debs; mkdir /tmp/netplan-debs")
        words = ["scp", "-q", "-F", str(lab.layout.ssh_config), *debs, f"{host}:/tmp/netplan-debs/"]
        subprocess.run(words, check=True, capture_output=True)
        lab.ssh(host, "sudo dpkg -i /tmp/netplan-debs/*.deb; sudo mkdir -p /etc/netplan")
        lab.ssh(host, "sudo systemctl unmask systemd-networkd; sudo systemctl start systemd-networkd")
    try:
        yield
    finally:
        for host in hosts:
            lab.ssh(host, "sudo systemctl mask --now systemd-networkd systemd-networkd.socket", check=False)
            lab.ssh(host, f"sudo dpkg --purge --force-all {' '.join(_PACKAGES)}; sudo rm -rf /etc/netplan", check=False)
            lab.ssh(host, f"rm -rf /tmp/netplan-debs; sudo rm -rf {cables.SYSFS}", check=False)
            for halves in cables.PORTS.values():
                for name, _, _ in halves:
                    lab.ssh(host, f"sudo ip link del {name}", check=False)


def lay(lab: Lab, *pairs: tuple[str, str]) -> None:
    """Lay these cables, each from `host/port` to `host/port`, in place of all that the hosts have."""
    ends = [(tuple(one.split("/")), tuple(other.split("/"))) for one, other in pairs]
    cables.cable(lab.layout, ends)  # type: ignore[arg-type]


def fleet_with(lab: Lab, name: str, hosts: Sequence[str], fabric: dict[str, Any] | None) -> Path:
    """A fleet file of these hosts with that fabric and no service."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {host: content["hosts"][host] for host in hosts}
        content["defaults"].pop("services")
        if fabric is not None:
            content["defaults"]["fabric"] = {"members": list(hosts), **fabric}

    return lab.write_fleet(f"fabric-{name}", change)


def settle(lab: Lab, fleet: Path, *arguments: str) -> Run:
    """Stage fabric; the caller looks at how it ended."""
    return lab.pyinfra("deploys/fabric.py", "-y", "--json", *arguments, fleet=fleet)


def changes(run: Run) -> int:
    """How many operations changed a host."""
    return int(run.json["results"]["totals"]["success"])


def of_the_host(lab: Lab, host: str) -> list[str]:
    """All that the stage changes, as it is."""
    return lab.ssh(host, _LEFT, check=False).stdout.splitlines()


def addresses(lab: Lab, host: str) -> dict[str, tuple[str, int]]:
    """Interface → its IPv4 address and MTU, of the fabric's."""
    found = {}
    for link in json.loads(lab.ssh(host, "ip -j addr").stdout):
        given = [f"{one['local']}/{one['prefixlen']}" for one in link["addr_info"] if one["family"] == "inet"]
        if "np" in link["ifname"] and given:
            found[link["ifname"]] = (" ".join(given), link["mtu"])
    return found
