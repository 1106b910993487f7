"""Settings of the operating system on a lab host: brought about, kept over a boot, and undone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.lab.pieces.apt import packages_index
from tests.lab.lab_driver import Lab, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-2"
_SOURCE = "/etc/apt/sources.list.d/own.list"
_CAP = "/run/tinderbox-lab-clocks"
_UNDO = "/var/lib/tinderbox/undo/system.json"


def fleet_of(lab: Lab, name: str, system: dict[str, Any] | None) -> Path:
    """A fleet file with that host alone, and with these settings of its operating system."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        if system is not None:
            content["defaults"]["system"] = system

    return lab.write_fleet(f"system-{name}", change)


def settle(lab: Lab, fleet: Path) -> Run:
    """Stage system on that host; a run that fails fails the test."""
    run = lab.pyinfra("deploys/system.py", "-y", "--json", fleet=fleet)
    assert run.rc == 0, run.text
    return run


def changes(run: Run) -> int:
    return int(run.json["results"]["totals"]["success"])


def shown(lab: Lab, unit: str, name: str) -> str:
    return lab.ssh(HOST, f"systemctl show --property {name} --value {unit}").stdout.strip()


def of_the_host(lab: Lab) -> list[str]:
    """What the settings change, as it is."""
    asked = (
        "systemctl get-default; cat /proc/sys/vm/swappiness; systemctl show -p MemoryMin ssh user.slice system.slice;"
        " dpkg-query -W -f '${db:Status-Abbrev}' earlyoom 2>&1; systemctl is-active earlyoom tinderbox-clocks;"
        f" ls {_CAP} /etc/sysctl.d /etc/systemd/system/*.d /etc/systemd/system/*.wants 2>&1"
    )
    return lab.ssh(HOST, asked, check=False).stdout.splitlines()


@pytest.fixture
def with_a_package(lab: Lab, tmp_path: Path) -> Iterator[None]:
    """While this lasts, the host has a source of its own with the distribution's earlyoom."""
    subprocess.run(["apt-get", "download", "earlyoom"], cwd=tmp_path, check=True, capture_output=True)
    (package,) = tmp_path.glob("earlyoom_*.deb")
    plain = tmp_path / "earlyoom.deb"
    package.rename(plain)
    (tmp_path / "Packages").write_text(packages_index(tmp_path))
    words = ["scp", "-F", str(lab.layout.ssh_config), str(plain), str(tmp_path / "Packages"), f"{HOST}:/tmp/"]
    subprocess.run(words, check=True, capture_output=True)
    lab.ssh(HOST, "sudo mkdir -p /opt/own && sudo mv /tmp/earlyoom.deb /tmp/Packages /opt/own/")
    lab.write(HOST, _SOURCE, "deb [trusted=yes] file:/opt/own ./\n")
    yield
    lab.ssh(HOST, f"sudo rm -rf /opt/own {_SOURCE}")


@pytest.mark.usefixtures("with_a_package")
def test_all_settings_come_stay_over_a_boot_and_go(lab: Lab) -> None:
    plain = fleet_of(lab, "plain", None)
    settle(lab, plain)
    before = of_the_host(lab)
    # The lab's hosts share their kernel with this machine, so the value is the one that it has.
    same = int(lab.ssh(HOST, "cat /proc/sys/vm/swappiness").stdout)
    wishes = {"earlyoom": True, "protect_ssh": True, "swappiness": same, "clock_cap_mhz": 2150, "desktop": False}
    asked = fleet_of(lab, "asked", wishes)

    assert changes(settle(lab, asked)) == 1
    assert changes(settle(lab, asked)) == 0

    def there() -> None:
        assert shown(lab, "earlyoom", "ActiveState") == "active"
        assert "llama-server" in lab.ssh(HOST, "ps -o args= -C earlyoom").stdout
        assert [shown(lab, unit, "MemoryMin") for unit in ("ssh", "system.slice", "user.slice")] == [
            str(192 << 20), str(192 << 20), str(4 << 30)
        ]  # fmt: skip
        assert lab.ssh(HOST, f"cat {_CAP}").stdout == "200,2150\n"
        assert lab.ssh(HOST, "systemctl get-default").stdout.strip() == "multi-user.target"

    there()
    lab.restart(HOST)
    there()
    assert changes(settle(lab, asked)) == 0
    lower = fleet_of(lab, "lower", {**wishes, "clock_cap_mhz": 2000})
    assert changes(settle(lab, lower)) == 1
    assert lab.ssh(HOST, f"cat {_CAP}").stdout == "200,2000\n"

    assert changes(settle(lab, plain)) == 1
    assert of_the_host(lab) == before
    assert lab.read(HOST, _UNDO).split() == ["{}"]
    assert changes(settle(lab, plain)) == 0


def test_a_run_that_was_cut_between_the_files_and_their_effect_is_finished(lab: Lab) -> None:
    asked, plain = fleet_of(lab, "clocks", {"clock_cap_mhz": 2150}), fleet_of(lab, "plain", None)
    settle(lab, asked)
    # As after a kill between the two commands, each way.
    unit = lab.read(HOST, "/etc/systemd/system/tinderbox-clocks.service")
    lab.ssh(HOST, "sudo rm /etc/systemd/system/tinderbox-clocks.service")
    assert changes(settle(lab, plain)) == 1
    assert lab.ssh(HOST, f"ls {_CAP}", check=False).rc != 0
    lab.write(HOST, "/etc/systemd/system/tinderbox-clocks.service", unit)
    assert changes(settle(lab, asked)) == 1
    assert lab.ssh(HOST, f"cat {_CAP}").stdout == "200,2150\n"
    settle(lab, plain)
