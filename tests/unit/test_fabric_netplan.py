"""What netplan is told, word for word, for every way of cabling; who else has configured the ports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.fabric import planned_ports
from modules.fabric.netplan import MARK, netplan_diff, netplan_text
from modules.fabric.wish import Configured, configured, in_the_way, is_given, moved, taken_addresses
from modules.hostside.netplan_files import mentions
from modules.spec.fabric import Fabric
from tests.unit.fabric_samples import HOSTS, MESH, fabric, ports

SNAPSHOTS = Path(__file__).parents[1] / "samples" / "netplan"
BOTH = [["spark-1/f0", "spark-2/f0"], ["spark-1/f1", "spark-2/f1"]]
CASES: dict[str, tuple[Fabric, str, tuple[str, ...]]] = {
    "pair-by-f0": (fabric("direct"), "spark-1", ("f0",)),
    "pair-by-f1": (fabric("direct"), "spark-2", ("f1",)),
    "pair-by-both": (fabric("direct", cables=BOTH), "spark-1", ("f0", "f1")),
    "ring-first": (fabric("ring", 3), "spark-1", ("f0", "f1")),
    "ring-second": (fabric("ring", 3), "spark-2", ("f0", "f1")),
    "ring-third": (fabric("ring", 3), "spark-3", ("f0", "f1")),
    "mesh": (fabric("mesh", 3, cables=MESH), "spark-2", ("f0", "f1")),
    "switch-by-f0": (fabric("switch", 3), "spark-3", ("f0",)),
    "switch-by-both": (fabric("switch", 3, ports=["f0", "f1"]), "spark-2", ("f0", "f1")),
}


def rendered(name: str) -> str:
    wanted, host, up = CASES[name]
    return netplan_text(wanted, planned_ports(wanted, host, ports(*up)))


@pytest.mark.parametrize("name", CASES)
def test_the_file_is_word_for_word_as_it_was_read_and_found_right(name: str) -> None:
    assert rendered(name) == (SNAPSHOTS / f"{name}.yaml").read_text()


@pytest.mark.parametrize("name", CASES)
def test_every_port_has_a_network_of_its_own_jumbo_frames_and_nothing_by_itself(name: str) -> None:
    document: dict[str, Any] = yaml.safe_load(rendered(name))
    ethernets = document["network"]["ethernets"]
    places = CASES[name][2]
    assert len(ethernets) == 2 * len(places)
    assert document["network"]["version"] == 2
    for port, said in ethernets.items():
        assert port.endswith(tuple(f"{place}np{place[1]}" for place in places))
        assert said.pop("addresses")
        assert said == {
            "dhcp4": False, "dhcp6": False, "accept-ra": False, "link-local": [], "mtu": 9000, "optional": True
        }  # fmt: skip
    assert configured(rendered(name)) == list(ethernets)


def test_a_diff_shows_what_comes_goes_and_changes() -> None:
    text = rendered("pair-by-f0")
    assert netplan_diff(None, text)[:2] == ["--- /dev/null", "+++ /etc/netplan/40-cx7.yaml"]
    assert netplan_diff(text, None)[1] == "+++ /dev/null"
    assert netplan_diff(text, text) == []
    changed = netplan_diff(text, text.replace("9000", "1500"))
    assert [line for line in changed if line.startswith(("-  ", "+  "))] == ["-      mtu: 9000", "+      mtu: 1500"] * 2


TWINS = ["enP2p1s0f0np0", "enp1s0f0np0"]
MACS = {"enp1s0f0np0": "4c:bb:47:00:00:00", "enP2p1s0f0np0": "4c:bb:47:00:00:02"}
NVIDIA = """\
network:
  version: 2
  ethernets:
    enp1s0f0np0:
      link-local: [ ipv4 ]
    enp1s0f1np1:
      link-local: [ ipv4 ]
"""
WHOLE = NVIDIA.replace("enp1s0f1np1", "enP2p1s0f0np0")


@pytest.mark.parametrize(
    ("text", "named", "alone"),
    [
        (WHOLE, TWINS, True),
        (NVIDIA, ["enp1s0f0np0"], False),
        ("network:\n  ethernets:\n    eth0: {dhcp4: true}\n", [], False),
        ("network:\n  ethernets:\n    enp1s0f0np01:\n      dhcp4: true\n", [], False),
        ("network:\n  ethernets:\n    all:\n      match:\n        driver: mlx5_core\n", TWINS, True),
        ("network:\n  ethernets:\n    any:\n      match: {name: \"enp1s0f0*\"}\n", ["enp1s0f0np0"], True),
        ("network:\n  ethernets:\n    a:\n      match:\n        macaddress: 4C:BB:47:00:00:02\n", TWINS[:1], True),
        ("network:\n  ethernets:\n    it:\n      match:\n        name: wl*\n", [], False),
        ("network:\n  bonds:\n    bond0:\n      interfaces: [enp1s0f0np0, eth1]\n", ["enp1s0f0np0"], False),
        ("network: {ethernets: {enp1s0f0np0: {dhcp4: true}}}\n", ["enp1s0f0np0"], False),
        ("# enp1s0f0np0 once\nnetwork:\n  version: 2\n  wifis:\n    wlP9s9:\n      dhcp4: true\n", [], False),
        ("", [], False),
    ],
)  # fmt: skip
def test_which_ports_a_file_configures_and_whether_nothing_else(text: str, named: list[str], alone: bool) -> None:
    assert mentions(text, MACS) == (named, alone)


def obstacles(files: list[Configured], text: str | None = None, **settings: Any) -> list[str]:
    wanted = fabric("direct", **settings)
    changes = {"addresses": ("10.1.1.1/24",)} if settings.get("network") else {}
    return list(in_the_way(wanted, planned_ports(wanted, "spark-1", ports("f0", **changes)), files, text))


def test_what_others_have_configured_is_left_alone_until_it_is_adopted() -> None:
    theirs = Configured("/etc/netplan/40-cx7.yaml", ("enp1s0f0np0",), alone=True)
    (told,) = obstacles([theirs])
    assert "40-cx7.yaml is not Tinderbox's and configures enp1s0f0np0" in told
    assert "sudo rm /etc/netplan/40-cx7.yaml" in told
    assert "fabric.adopt: true" in told
    assert obstacles([theirs], adopt=True) == []


def test_a_file_that_configures_more_is_never_replaced() -> None:
    shared = Configured("/etc/netplan/01-all.yaml", ("enp1s0f0np0",), alone=False)
    for adopt in (False, True):
        (told,) = obstacles([shared], adopt=adopt)
        assert "other interfaces beside" in told
    plan = planned_ports(fabric("direct"), "spark-1", ports("f0"))
    assert moved(plan, [shared, Configured("/etc/netplan/50-own.yaml", ("enp1s0f0np0",), alone=True)]) == [
        "/etc/netplan/50-own.yaml"
    ]


def test_an_address_that_no_file_gives_is_not_overwritten_and_ours_of_before_is() -> None:
    (first, _) = obstacles([], network="10.9.0.0/22")
    assert "enp1s0f0np0 has 10.1.1.1/24, which no file gives it" in first
    assert obstacles([], f"{MARK}\n      addresses: [10.1.1.1/24]\n", network="10.9.0.0/22") == []


def test_another_interface_in_the_same_network_is_told() -> None:
    (told,) = taken_addresses(fabric("direct"), {"enP7s7": ("192.168.101.9/24",), "docker0": ("172.17.0.1/16",)})
    assert "enP7s7 has 192.168.101.9/24, which overlaps fabric.network 192.168.100.0/22" in told


def test_a_port_is_given_what_it_can_have() -> None:
    def first(**changes: Any) -> bool:
        return is_given(planned_ports(fabric("direct"), "spark-1", ports("f0", **changes))[0])

    assert first(addresses=("192.168.100.1/24",), mtu=9000)
    assert not first(addresses=("192.168.100.1/24",), mtu=1500)
    assert not first(addresses=(), mtu=9000)


def test_a_cable_that_was_pulled_stays_in_the_plan() -> None:
    text = rendered("pair-by-f0")
    names = [port.name for port in planned_ports(fabric("direct"), "spark-1", ports("f1"), configured(text))]
    assert names == ["enp1s0f0np0", "enP2p1s0f0np0", "enp1s0f1np1", "enP2p1s0f1np1"]
    assert HOSTS[0] not in names
