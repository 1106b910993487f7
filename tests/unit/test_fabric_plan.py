"""Who has which address over which cable, and what engines are told."""

from __future__ import annotations

import ipaddress
from itertools import combinations

import pytest

from modules.fabric import (
    PortsError,
    address_for,
    address_of,
    engine_environment,
    environment_text,
    own_links,
    planned_ports,
    rendezvous_address,
)
from modules.spec.fabric import Fabric
from tests.unit.fabric_samples import HOSTS, MESH, fabric, ports

ALL = [
    fabric("direct"),
    fabric("direct", cables=[["spark-1/f0", "spark-2/f1"]]),
    fabric("direct", network="10.9.0.0/28"),
    fabric("ring", 3),
    fabric("ring", 3, network="10.9.0.0/26"),
    fabric("mesh", 3, cables=MESH),
    fabric("switch", 3),
    fabric("switch", 3, network="10.0.0.0/8"),
]


def every_address(wanted: Fabric) -> list[ipaddress.IPv4Interface]:
    return [
        address_of(wanted, host, link.slot, twin)
        for host in wanted.members
        for link in own_links(wanted, host)
        for twin in range(2)
    ]


@pytest.mark.parametrize("wanted", ALL, ids=lambda one: f"{one.topology}-{one.network}")
def test_no_address_twice_twins_apart_and_all_in_the_network(wanted: Fabric) -> None:
    found = every_address(wanted)
    assert len({each.ip for each in found}) == len(found)
    whole = ipaddress.IPv4Network(wanted.network)
    for each in found:
        assert each.network.subnet_of(whole)
        assert each.ip not in (each.network.network_address, each.network.broadcast_address)
    for host in wanted.members:
        own = [address_of(wanted, host, link.slot, twin) for link in own_links(wanted, host) for twin in range(2)]
        assert not any(one.network.overlaps(other.network) for one, other in combinations(own, 2))


@pytest.mark.parametrize("wanted", ALL, ids=lambda one: f"{one.topology}-{one.network}")
def test_both_ends_of_a_half_are_in_one_network(wanted: Fabric) -> None:
    for host in wanted.members:
        for port in planned_ports(wanted, host, ports("f0", "f1")):
            for peer, address in port.peers.items():
                assert peer != host
                assert ipaddress.IPv4Address(address) in port.address.network
                assert address == str(address_of(wanted, peer, port.slot, port.twin).ip)


def test_the_addresses_of_a_pair_are_those_of_nvidias_guide() -> None:
    first, second = planned_ports(fabric("direct"), "spark-1", ports("f0"))
    assert (first.name, str(first.address), first.peers) == (
        "enp1s0f0np0", "192.168.100.1/24", {"spark-2": "192.168.100.2"}
    )  # fmt: skip
    assert (second.name, str(second.address), second.mtu) == ("enP2p1s0f0np0", "192.168.101.1/24", 9000)


def test_a_pair_may_be_cabled_by_different_ports() -> None:
    one, other = (
        planned_ports(fabric("direct"), host, ports(port)) for host, port in zip(HOSTS, ("f0", "f1"), strict=False)
    )
    assert [port.name for port in other] == ["enp1s0f1np1", "enP2p1s0f1np1"]
    assert one[0].peers["spark-2"] == str(other[0].address.ip)


def test_a_ring_goes_from_f0_to_the_next_ones_f1() -> None:
    wanted = fabric("ring", 3)
    for host, following in zip(HOSTS, (*HOSTS[1:], HOSTS[0]), strict=True):
        at = {port.port.place: tuple(port.peers) for port in planned_ports(wanted, host, ports("f0", "f1"))}
        assert at["f0"] == (following,)
        assert at["f1"] == (HOSTS[HOSTS.index(host) - 1],)


def test_peers_are_told_the_address_of_the_cable_between_them() -> None:
    wanted = fabric("mesh", 3, cables=MESH)
    for host in HOSTS:
        for peer in set(HOSTS) - {host}:
            port = next(one for one in planned_ports(wanted, peer, ports("f0", "f1")) if host in one.peers)
            assert address_for(wanted, host, peer) == port.peers[host]
    with pytest.raises(KeyError, match="not two members"):
        address_for(wanted, "spark-1", "spark-9")


def test_only_where_one_network_joins_all_is_there_one_address_to_meet_at() -> None:
    assert rendezvous_address(fabric("direct"), "spark-2") == "192.168.100.2"
    assert rendezvous_address(fabric("switch", 3), "spark-3") == "192.168.100.3"
    assert rendezvous_address(fabric("ring", 3), "spark-1") is None


@pytest.mark.parametrize(
    ("found", "wanted", "words"),
    [
        ((), fabric("direct"), "no ConnectX-7 port was found"),
        (ports(), fabric("direct"), "no port has a carrier .*: plug the cable in at both ends"),
        (ports(carrier=None), fabric("direct"), "sudo ip link set enp1s0f0np0 up"),
        (ports("f0")[:2], fabric("direct"), "only one half of port f0 is there .enp1s0f0np0."),
        (ports("f0")[::2], fabric("ring", 3), "no port f1"),
    ],
)
def test_ports_that_are_not_there_are_told_with_a_remedy(found: tuple[object, ...], wanted: Fabric, words: str) -> None:
    with pytest.raises(PortsError, match=words):
        planned_ports(wanted, "spark-1", found)  # type: ignore[arg-type]


def test_engines_of_a_pair_meet_and_talk_over_the_fabric() -> None:
    wanted = fabric("direct")
    assert engine_environment(wanted, planned_ports(wanted, "spark-1", ports("f1")), "enP7s7") == {
        "NCCL_SOCKET_IFNAME": "enp1s0f1np1",
        "GLOO_SOCKET_IFNAME": "enp1s0f1np1",
        "TP_SOCKET_IFNAME": "enp1s0f1np1",
        "UCX_NET_DEVICES": "enp1s0f1np1",
        "OMPI_MCA_btl_tcp_if_include": "enp1s0f1np1",
        "VLLM_HOST_IP": "192.168.100.1",
        "NCCL_NET": "IB",
        "NCCL_IB_DISABLE": "0",
        "NCCL_IB_HCA": "rocep1s0f1,roceP2p1s0f1",
        "NCCL_IGNORE_CPU_AFFINITY": "1",
    }


def test_engines_of_a_ring_meet_on_the_management_network_and_talk_over_all_cables() -> None:
    wanted = fabric("ring", 3)
    variables = engine_environment(wanted, planned_ports(wanted, "spark-1", ports("f0", "f1")), "enP7s7")
    assert variables["NCCL_SOCKET_IFNAME"] == "enP7s7"
    assert variables["NCCL_IB_HCA"] == "rocep1s0f0,roceP2p1s0f0,rocep1s0f1,roceP2p1s0f1"
    assert (variables["NCCL_IB_SUBNET_AWARE_ROUTING"], variables["NCCL_IB_MERGE_NICS"]) == ("1", "0")
    assert "VLLM_HOST_IP" not in variables
    text = environment_text(variables)
    assert text.endswith("\n")
    assert '"' not in text


def test_without_rdma_nccl_is_not_bound_to_it() -> None:
    wanted = fabric("direct")
    variables = engine_environment(wanted, planned_ports(wanted, "spark-1", ports("f0", rdma=None)), None)
    assert not {"NCCL_NET", "NCCL_IB_HCA"} & set(variables)
