"""Check what the hosts of a fleet say of their fabrics together."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from modules.fabric import address_of, own_links
from modules.fabric.addresses import TWINS
from modules.fleet.layers import Layers
from modules.fleet.problem import Problem
from modules.fleet.suggest import advice
from modules.fleet.tree import find
from modules.spec.fabric import Fabric
from modules.spec.fleet import ResolvedHost

_OWN = {"ports", "adopt"}
_Fault = tuple[str, str, str]
"""Key below `fabric`, what is wrong, what to do."""


def fabric_problems(hosts: Sequence[ResolvedHost], layers: Layers) -> list[Problem]:
    """Tell which fabrics do not fit the fleet, or each other."""
    whole = {host.name: host for host in hosts}
    fabrics = {host.name: host.settings.fabric for host in hosts if host.settings.fabric is not None}
    problems: list[Problem] = []
    for name, fabric in fabrics.items():
        tree = layers.settings(name)
        for key, what, todo in _faults(name, fabric, fabrics, whole, layers.hosts):
            place = ("fabric", key) if key else ("fabric",)
            problems.append(Problem(find(tree, place).origin, what, todo))
    # What stands in a group is wrong once, however many hosts it is of.
    return list(dict.fromkeys(problems))


def _faults(
    name: str, fabric: Fabric, fabrics: Mapping[str, Fabric], whole: Mapping[str, ResolvedHost], known: Sequence[str]
) -> Iterator[_Fault]:
    unknown = [member for member in fabric.members if member not in known]
    for member in unknown:
        yield "members", f"no host {member!r} in this fleet", advice(member, known, "hosts")
    if unknown:
        return
    if name not in fabric.members:
        what = f"host {name} has this fabric and is not among its members"
        yield "members", what, "add it there, or give fabric to the members alone, by a group"
        return
    for member in fabric.members:
        if member in whole and member not in fabrics:
            yield "members", f"{member} is a member and has no fabric", "give it the same, by a group of all members"
        elif member in whole and _shared(fabrics[member]) != _shared(fabric):
            what = f"{member} is a member and its fabric differs from {name}'s"
            yield "members", what, "write it once, in a group of all members; ports and adopt may differ"
    yield from _network_faults(name, fabric, fabrics, whole)


def _network_faults(
    name: str, fabric: Fabric, fabrics: Mapping[str, Fabric], whole: Mapping[str, ResolvedHost]
) -> Iterator[_Fault]:
    network = ipaddress.IPv4Network(fabric.network)
    for theirs in fabrics.values():
        if set(theirs.members) != set(fabric.members) and network.overlaps(ipaddress.IPv4Network(theirs.network)):
            what = f"{fabric.network} overlaps {theirs.network}, the fabric of {', '.join(theirs.members)}"
            yield "network", what, "give each fabric a network of its own"
            break
    for host in whole.values():
        if _is_in(host.address, network):
            what = f"{host.address}, where {host.name} is reached, is in {fabric.network}"
            yield "network", what, "use another network than the one that hosts are reached by"
    peer_address = whole[name].settings.network.peer_address
    if peer_address is not None and _is_in(peer_address, network):
        links = own_links(fabric, name)
        given = [str(address_of(fabric, name, link.slot, twin).ip) for link in links for twin in range(TWINS)]
        if peer_address not in given:
            what = (
                f"network.peer_address {peer_address} is in {fabric.network}, and {name} gets {', '.join(given)} there"
            )
            yield "network", what, "use one of these, or another network"


def _is_in(address: str, network: ipaddress.IPv4Network) -> bool:
    try:
        return ipaddress.ip_address(address) in network
    except ValueError:  # a name: what it stands for is not known before the host is asked
        return False


def _shared(fabric: Fabric) -> dict[str, object]:
    return fabric.model_dump(exclude=_OWN)
