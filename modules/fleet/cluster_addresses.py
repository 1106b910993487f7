"""At which addresses the members of a service that spans hosts reach each other."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence

from modules.fabric.addresses import TWINS, address_of, own_links, rendezvous_address
from modules.spec.base import is_loopback
from modules.spec.cluster import Cluster
from modules.spec.fleet import ResolvedHost


def own_address(host: ResolvedHost, members: Sequence[str] = ()) -> str | None:
    """Where the others reach a host, as far as the fleet file tells it; None: by a name, or on loopback.

    `members`: of its cluster; where one fabric joins all of them, it is its address there.
    """
    fabric = host.settings.fabric
    if fabric is not None and members and set(members) <= set(fabric.members):
        joined = rendezvous_address(fabric, host.name)
        if joined is not None:
            return joined
    named = host.settings.network.peer_address
    if named is not None:
        return named
    try:
        ipaddress.ip_address(host.address)
    except ValueError:
        return None
    return None if is_loopback(host.address) else host.address


def with_addresses(hosts: Sequence[ResolvedHost]) -> list[ResolvedHost]:
    """The hosts, each cluster with the address of every member that is known."""
    by_name = {host.name: host for host in hosts}
    return [_addressed(host, by_name) for host in hosts]


def _addressed(host: ResolvedHost, by_name: Mapping[str, ResolvedHost]) -> ResolvedHost:
    services = {
        name: service.model_copy(update={"cluster": _found(service.cluster, by_name)})
        for name, service in host.settings.services.items()
    }
    return host.model_copy(update={"settings": host.settings.model_copy(update={"services": services})})


def _found(cluster: Cluster | None, by_name: Mapping[str, ResolvedHost]) -> Cluster | None:
    if cluster is None:
        return None
    known = {each: own_address(by_name[each], cluster.hosts) for each in cluster.hosts if each in by_name}
    found = {each: address for each, address in known.items() if address is not None}
    return cluster.model_copy(update={"addresses": {**found, **cluster.addresses}})


def given_by_fabric(host: ResolvedHost, address: str) -> list[str]:
    """What the fabric gives the host, where the address is in its network."""
    fabric = host.settings.fabric
    if fabric is None or host.name not in fabric.members:
        return []
    if ipaddress.ip_address(address) not in ipaddress.IPv4Network(fabric.network):
        return []
    links = own_links(fabric, host.name)
    return [str(address_of(fabric, host.name, link.slot, twin).ip) for link in links for twin in range(TWINS)]
