"""What is wrong with a cable, and what to do about it."""

from __future__ import annotations

from typing import Any

import pytest

from modules.fabric import PlannedPort, planned_ports
from modules.fabric.findings import (
    SMALL,
    cable_faults,
    firmware_warning,
    kernel_warning,
    port_warnings,
    possible_pings,
    without_peers,
)
from modules.fabric.kernel import writes_argument
from tests.unit.fabric_samples import fabric, ports

WANTED = fabric("direct")
GIVEN = {"enp1s0f0np0": "192.168.100.1", "enP2p1s0f0np0": "192.168.101.1"}


def planned(**changes: Any) -> tuple[PlannedPort, ...]:
    """A pair's ports by f0 with the addresses that they are to have."""
    found = tuple(
        type(port)(**{**vars(port), "addresses": (f"{GIVEN[port.name]}/24",), "mtu": 9000, **changes})
        for port in ports("f0")[::2]
    )
    return planned_ports(WANTED, "spark-1", found, tuple(GIVEN))


def tries(**trouble: str) -> dict[tuple[str, str, int], str]:
    """All packets came back, but those that are named by `half_size`."""
    return {
        (source, target, size): trouble.get(f"{'first' if '100' in source else 'second'}_{size}", "")
        for source, target, size in possible_pings(WANTED, "spark-1")
    }


def test_a_pair_that_is_well_has_no_faults() -> None:
    assert list(cable_faults(planned(), tries())) == []
    assert list(port_warnings(planned())) == []


def test_one_half_that_is_silent_is_named_and_the_other_is_not() -> None:
    silent = {f"second_{size}": "no answer in 3 tries" for size in (SMALL, 9000)}
    (told,) = cable_faults(planned(), tries(**silent))
    assert told.startswith("port f0 (enP2p1s0f0np0, half 2 of 2) to spark-2: 192.168.101.2 (spark-2) does not answer")
    assert "fabric.cables" in told


def test_a_wrong_mtu_on_the_way_is_told_from_a_dead_cable() -> None:
    (told,) = cable_faults(planned(), tries(first_9000="Message too long"))
    assert "packets of 9000 bytes do not pass to 192.168.100.2 (Message too long), small ones do" in told
    assert "set MTU 9000 on spark-2's port" in told


def test_a_neighbour_that_has_failed_is_not_asked() -> None:
    assert without_peers(planned(), {"spark-2"}) == ()
    switch = planned_ports(fabric("switch", 3), "spark-1", ports("f0"))
    left = without_peers(switch, {"spark-2"})
    assert [list(port.peers) for port in left] == [["spark-3"], ["spark-3"]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"carrier": False}, "no carrier; plug the cable in at both ends"),
        ({"carrier": None}, "the interface is down, `sudo ip link set enp1s0f0np0 up`"),
        ({"addresses": ()}, "it has not got 192.168.100.1/24"),
        ({"mtu": 1500}, "its MTU is 1500, wanted 9000"),
    ],
)
def test_what_the_host_itself_shows_comes_before_what_was_tried(changes: dict[str, Any], words: str) -> None:
    told = list(cable_faults(planned(**changes), {}))
    assert len(told) == 2
    assert words in told[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"speed_mbps": 100_000}, "the link runs at 100 Gb/s, wanted 200"),
        ({"pcie_gts": 2.5}, "its PCIe link runs at 2.5 GT/s, wanted 32; shut the host down, take it off the mains"),
        ({"pcie_width": 1}, "its PCIe link has 1 lanes, wanted 4"),
        ({"rdma": None}, "NCCL falls back to sockets"),
        ({"rdma_state": "DOWN"}, "RDMA device rocep1s0f0 is DOWN"),
        ({"gids": {"10.0.0.1": 3}}, "no RoCE v2 GID for 192.168.100.1"),
    ],
)
def test_known_bad_states_are_named_with_a_remedy(changes: dict[str, Any], words: str) -> None:
    told = list(port_warnings(planned(**changes)))
    assert any(words in line for line in told), told


def test_a_kernel_with_handover_is_told_until_it_runs_without() -> None:
    assert "runs without kho=off" in (kernel_warning("7.0.0-1019-nvidia", ("quiet",)) or "")
    assert "sudo reboot" in (kernel_warning("7.0.0-1019-nvidia", ()) or "")
    assert kernel_warning("7.0.0-1019-nvidia", ("kho=off",)) is None
    assert kernel_warning("6.17.0-1029-nvidia", ()) is None


def test_the_boot_loader_is_told_only_where_the_kernel_wants_it_and_nobody_else_has() -> None:
    assert writes_argument("7.0.0-1019-nvidia", (), ours=False)
    assert writes_argument("7.0.0-1019-nvidia", ("kho=off",), ours=True)
    assert not writes_argument("7.0.0-1019-nvidia", ("kho=off",), ours=False)
    assert not writes_argument("6.17.0-1029-nvidia", (), ours=True)


def test_two_firmwares_are_told_and_one_that_is_not_known_is_not_another() -> None:
    assert firmware_warning({"spark-1": "28.45.4028", "spark-2": None}) is None
    told = firmware_warning({"spark-1": "28.45.4028", "spark-2": "28.44.1036"}) or ""
    assert "spark-1: 28.45.4028, spark-2: 28.44.1036" in told
    assert "fwupdmgr" in told
