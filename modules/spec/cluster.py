"""One engine over several hosts."""

from __future__ import annotations

import ipaddress

from pydantic import Field, field_validator, model_validator

from modules.spec.base import HostName, IpAddress, Port, Strict, broken_rule


def _is_nobodys(address: str) -> bool:
    found = ipaddress.ip_address(address)
    return found.is_loopback or found.is_unspecified or found.is_multicast


class Cluster(Strict):
    """The hosts over which one engine is spread, and where they meet.

    `hosts`: its members; the first is the head, which alone has the API. `port`: on the head, at which the engine's
    parts find each other. `link_port`: on the head, at which the members' own programs keep together. `addresses`:
    member → its address between the members, where that does not follow from its fabric, `network.peer_address` or
    its `address`. A loaded fleet has all of them.
    """

    hosts: tuple[HostName, ...] = Field(min_length=2)
    port: Port = 29501  # eugr/spark-vllm-docker, since it does without Ray
    link_port: Port = 29502
    addresses: dict[HostName, IpAddress] = {}

    @field_validator("hosts")
    @classmethod
    def _one_place_each(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for at, name in enumerate(hosts) if name in hosts[:at]), None)
        if twice is not None:
            raise broken_rule(f"{twice} stands there twice, and a host has one place in a cluster: name it once")
        return hosts

    @model_validator(mode="after")
    def _consistent(self) -> Cluster:
        if self.port == self.link_port:
            raise broken_rule(f"port and link_port are both {self.port}: change one", "link_port")
        stranger = next((name for name in self.addresses if name not in self.hosts), None)
        if stranger is not None:
            raise broken_rule(f"{stranger} is none of the cluster's hosts: take it out", "addresses", stranger)
        for name, address in self.addresses.items():
            if _is_nobodys(address):
                message = f"{address} is no address at which other hosts reach {name}"
                raise broken_rule(f"{message}: write its own on the network between the members", "addresses", name)
        by_address: dict[str, str] = {}
        for name, address in self.addresses.items():
            other = by_address.setdefault(address, name)
            if other != name:
                raise broken_rule(f"{address} is {other}'s too: give each its own", "addresses", name)
        return self

    @property
    def head(self) -> str:
        """The member that has the API, and decides."""
        return self.hosts[0]

    def rank(self, host: str) -> int:
        """Place of a member; the head's is 0."""
        return self.hosts.index(host)
