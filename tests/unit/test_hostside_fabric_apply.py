"""Changes of netplan's file on a host: kept when confirmed, taken back when not, whole after every cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modules.hostside.fabric_apply import apply, confirm, rollback
from modules.hostside.fabric_guard import HOME, unit_text

# As the program imports it on a host, so that it is the very class whose errors it knows.
if TYPE_CHECKING:
    from modules.hostside.fabric_host import FabricError, Host
else:
    from fabric_host import FabricError, Host

NETPLAN = "/etc/netplan/40-cx7.yaml"
OTHER = "/etc/netplan/60-own.yaml"
PORTS = {"enp1s0f0np0": {"address": "192.168.100.1/24", "mtu": 9000}}
OURS = "# ours\n"


class Machine:
    """A host in a folder, with a netplan that gives each port in its files a networkd file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said, self.fails, self.cuts = folder, list[str](), "", ""
        for port in ("enp1s0f0np0", "enp1s0f1np1"):
            self.put(f"/sys/class/net/{port}/mtu", "1500\n")
        (folder / "etc/netplan").mkdir(parents=True)

    @property
    def host(self) -> Host:
        return Host(self.folder, self.ask, lambda _: None)

    def path(self, name: str) -> Path:
        return self.folder / name.lstrip("/")

    def put(self, name: str, text: str) -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(text)

    def ask(self, *command: str) -> tuple[int, str]:
        text = " ".join(command)
        self.said.append(text)
        if self.cuts and text.startswith(self.cuts) and "--root-dir" not in text:
            raise KeyboardInterrupt
        if self.fails and self.fails in text:
            return 1, "out of order"
        if text == "netplan generate":
            for port in PORTS:
                self.put(f"/run/systemd/network/10-netplan-{port}.network", "")
        if text.startswith("ip -4 addr"):
            return 0, "inet 192.168.100.1/24 scope global"
        return 0, ""

    @property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in (self.folder / "etc/netplan").iterdir()}

    @property
    def units(self) -> set[str]:
        return {path.name for path in self.path("/etc/systemd/system").iterdir()}

    def boots(self) -> None:
        """What systemd does at boot with what is enabled: its memory, transient timers in it, is lost."""
        self.said.clear()
        for link in self.path("/etc/systemd/system/multi-user.target.wants").glob("*"):
            text = self.path(str(link.readlink())).read_text()
            assert "/fabric_apply.py boot\n" in text
            if self.path(text.split("ConditionPathExists=")[1].split("\n")[0]).exists():
                rollback(self.host, at_boot=True)

    @property
    def notes(self) -> set[str]:
        return {path.name for path in self.path(HOME).iterdir()} if self.path(HOME).exists() else set()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.path(HOME).mkdir(parents=True)
    return made


def wish(
    text: str | None = OURS, *, move: list[str] | None = None, ports: dict[str, Any] | None = None
) -> dict[str, Any]:
    given = PORTS if ports is None and text is not None else ports or {}
    return {"path": NETPLAN, "text": text, "ports": given, "move": move or [], "confirm_s": 90}


def test_a_change_is_tried_elsewhere_guarded_made_and_confirmed(machine: Machine) -> None:
    told = apply(machine.host, wish())
    assert told == ["enp1s0f0np0: 192.168.100.1/24"]
    assert machine.files == {"40-cx7.yaml": OURS}
    assert machine.path(NETPLAN).stat().st_mode & 0o777 == 0o600
    steps = ("netplan generate --root-dir", "systemd-run", "networkctl reload", "networkctl reconfigure enp1s0f0np0")
    order = [next(i for i, line in enumerate(machine.said) if line.startswith(step)) for step in steps]
    assert order == sorted(order)
    assert not any("eth0" in line or "netplan apply" in line for line in machine.said)
    assert machine.units == {"multi-user.target.wants", "tinderbox-fabric-unconfirmed.service"}
    confirm(machine.host)
    assert machine.said[-1] == "systemctl stop tinderbox-fabric-rollback.timer"
    assert machine.notes == {"former.json"}
    assert machine.units == {"multi-user.target.wants"}


def test_what_nobody_confirms_is_taken_back_and_confirming_then_is_an_error(machine: Machine) -> None:
    machine.put(NETPLAN, "theirs\n")
    apply(machine.host, wish())
    rollback(machine.host)
    assert machine.files == {"40-cx7.yaml": "theirs\n"}
    assert machine.notes == set()
    assert "ip link set enp1s0f0np0 mtu 1500" in machine.said
    with pytest.raises(FabricError, match="run again"):
        confirm(machine.host)


@pytest.mark.parametrize("fails", ["networkctl reload", "networkctl reconfigure", "systemctl start systemd-networkd"])
def test_a_change_that_fails_is_taken_back_at_once(machine: Machine, fails: str) -> None:
    machine.fails = fails
    with pytest.raises(FabricError, match="out of order"):
        apply(machine.host, wish())
    assert machine.files == {}


def test_files_that_netplan_refuses_change_nothing(machine: Machine) -> None:
    machine.fails = "--root-dir"
    with pytest.raises(FabricError, match="nothing was changed: out of order"):
        apply(machine.host, wish())
    assert (machine.files, machine.notes) == ({}, set())
    assert not any(line.startswith("systemd-run") for line in machine.said)


def test_undoing_brings_back_the_first_files_whatever_came_between(machine: Machine) -> None:
    machine.put(NETPLAN, "theirs\n")
    machine.put(OTHER, "own\n")
    apply(machine.host, wish(move=[OTHER]))
    confirm(machine.host)
    assert machine.files == {"40-cx7.yaml": OURS}
    apply(machine.host, wish("# ours, changed\n"))
    confirm(machine.host)
    apply(machine.host, wish(None))
    confirm(machine.host)
    assert machine.files == {"40-cx7.yaml": "theirs\n", "60-own.yaml": "own\n"}
    assert machine.notes == set()


def test_a_port_that_is_no_longer_ours_loses_its_address_and_gets_its_mtu_back(machine: Machine) -> None:
    apply(machine.host, wish())
    confirm(machine.host)
    apply(machine.host, wish(ports={"enp1s0f1np1": {"address": "192.168.100.1/24", "mtu": 9000}}))
    assert "ip addr del 192.168.100.1/24 dev enp1s0f0np0" in machine.said
    assert "ip link set enp1s0f0np0 mtu 1500" in machine.said


def test_a_file_of_ours_is_taken_away_also_where_the_notes_are_lost(machine: Machine) -> None:
    apply(machine.host, wish())
    confirm(machine.host)
    machine.path(f"{HOME}/former.json").unlink()
    apply(machine.host, wish(None))
    assert machine.files == {}


def test_what_nobody_has_confirmed_when_the_host_restarts_is_taken_back_at_boot(machine: Machine) -> None:
    machine.put(NETPLAN, "theirs\n")
    apply(machine.host, wish(move=[OTHER]))
    machine.boots()
    assert (machine.files, machine.notes) == ({"40-cx7.yaml": "theirs\n"}, set())
    # It comes before networkd, which it may therefore not wait for.
    assert machine.said == ["netplan generate"]
    assert machine.units == {"multi-user.target.wants"}

    apply(machine.host, wish())
    confirm(machine.host)
    machine.boots()
    assert (machine.files, machine.said) == ({"40-cx7.yaml": OURS}, [])


def test_the_unit_for_the_boot_comes_before_whatever_configures_the_network() -> None:
    lines = unit_text(Path("/usr/local/lib/tinderbox/fabric_apply.py")).splitlines()
    before = next(line for line in lines if line.startswith("Before=network-pre"))
    assert {"network-pre.target", "systemd-networkd.service", "NetworkManager.service"} <= set(before[7:].split())
    assert "DefaultDependencies=no" in lines  # else it would come after basic.target
    assert "ExecStart=/usr/bin/python3 /usr/local/lib/tinderbox/fabric_apply.py boot" in lines


@pytest.mark.parametrize("end", ["rollback", "next run", "boot"])
@pytest.mark.parametrize("undoing", [False, True])
@pytest.mark.parametrize("cut", ["systemd-run", "netplan generate", "networkctl reload"])
def test_a_cut_anywhere_is_taken_back_or_finished_by_the_next_run(
    machine: Machine, cut: str, undoing: bool, end: str
) -> None:
    machine.put(NETPLAN, "theirs\n")
    first, wanted = (OURS, None) if undoing else (None, OURS)
    if undoing:
        apply(machine.host, wish())
        confirm(machine.host)
    machine.cuts = cut
    with pytest.raises(KeyboardInterrupt):
        apply(machine.host, wish(wanted))
    machine.cuts = ""
    if end != "next run":
        rollback(machine.host) if end == "rollback" else machine.boots()
        # Cut before it was guarded, it had changed nothing either.
        assert machine.files == {"40-cx7.yaml": first or "theirs\n"}
    else:
        apply(machine.host, wish(wanted))
        confirm(machine.host)
        assert machine.files == {"40-cx7.yaml": wanted or "theirs\n"}
    if (end != "next run") == undoing:
        apply(machine.host, wish(None))
        confirm(machine.host)
    assert machine.files == {"40-cx7.yaml": "theirs\n"}
    assert machine.notes == set()
