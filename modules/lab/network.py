"""A lab's docker network."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

import docker
from docker.types import IPAMConfig, IPAMPool

from modules.lab.layout import LABEL, Layout


@dataclass(frozen=True)
class Addresses:
    """Who has which address. The mirror's is the first after the gateway; hosts count up from the tenth."""

    subnet: ipaddress.IPv4Network

    @classmethod
    def of(cls, subnet: str) -> Addresses:
        """The addresses of a subnet, as `a.b.c.d/n`."""
        return cls(ipaddress.IPv4Network(subnet))

    @property
    def mirror(self) -> str:
        """The mirror's, which is also the name server's."""
        return str(self.subnet[2])

    def host(self, number: int) -> str:
        """A host's, counted from 1."""
        return str(self.subnet[9 + number])


def create_network(client: docker.DockerClient, layout: Layout) -> Addresses:
    """Make the lab's network, on a subnet that docker finds free."""
    # Only on a network with a subnet of our own may containers ask for an address; so docker is asked twice.
    trial = client.networks.create(layout.network, driver="bridge", labels=layout.labels)
    trial.reload()
    subnet = str(trial.attrs["IPAM"]["Config"][0]["Subnet"])
    trial.remove()
    pool = IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)])
    client.networks.create(layout.network, driver="bridge", labels=layout.labels, ipam=pool)
    return Addresses.of(subnet)


def addresses_of(client: docker.DockerClient, layout: Layout) -> Addresses | None:
    """The addresses of the lab's network, or None when there is no such network."""
    for network in client.networks.list(names=[layout.network], filters={"label": f"{LABEL}={layout.name}"}):
        network.reload()
        return Addresses.of(network.attrs["IPAM"]["Config"][0]["Subnet"])
    return None
