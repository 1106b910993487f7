"""The fleet file as it is written."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from modules.spec.base import Address, HostName, KeyFingerprint, Name, Strict, UserName
from modules.spec.model import Model
from modules.spec.secret import SecretReference
from modules.spec.settings import HostSettings, Service
from modules.spec.strategy import Strategy


class Ssh(Strict):
    """How hosts are reached. `key`, `known_hosts`, `config`: paths, relative to the fleet file, or with `~`.

    The rest is for the first login, by `make bootstrap`. `host_key`: fingerprint of the key that the host must show.
    `password`, `sudo_password`: names of secrets: the user's, and sudo's own where that is another one. `sudo`: what
    the user may run by sudo without a password: `listed`: what Tinderbox runs; `all`: everything.
    """

    user: UserName = "nvidia"
    port: int = Field(default=22, ge=1, le=65535)
    key: str | None = None
    known_hosts: str | None = None
    config: str | None = None
    host_key: KeyFingerprint | None = None
    password: Name | None = None
    sudo_password: Name | None = None
    sudo: Literal["listed", "all"] = "listed"


class Host(Strict):
    """One host: where it is, and how its settings differ. `address` defaults to the host's name."""

    address: Address | None = None
    ssh: dict[str, object] = {}
    groups: tuple[Name, ...] = ()
    settings: dict[str, object] = {}


class PlacedService(Service):
    """A service that no layer gives a host by itself.

    `replicas`: on so many hosts, chosen by the memory that they have left; None: on all that it may be on. `on`: the
    groups and hosts that it may be on; without any: all hosts of the fleet.
    """

    replicas: int | None = Field(default=None, ge=1, le=256)
    on: tuple[HostName, ...] = ()

    @field_validator("on")
    @classmethod
    def _names_somebody(cls, on: tuple[str, ...]) -> tuple[str, ...]:
        # Read as all hosts, a list whose last name was taken out would put the service everywhere.
        if not on:
            raise ValueError("empty: name groups or hosts, or take the key out for all hosts")
        return on


class FleetFile(Strict):
    """`defaults` hold for every host; `groups` and then a host's own `settings` are laid over them, key by key.

    `strategy`: how a change goes over the hosts; None: over all of them at once.
    `models`: beside those of the catalog, for services to name. `services`: those whose hosts are chosen here.
    """

    fleet: Name
    ssh: Ssh = Ssh()
    secrets: dict[Name, SecretReference] = {}
    models: dict[Name, Model] = {}
    services: dict[Name, PlacedService] = {}
    defaults: dict[str, object] = {}
    groups: dict[Name, dict[str, object]] = {}
    hosts: dict[HostName, Host] = Field(min_length=1)
    strategy: Strategy | None = None


class ResolvedHost(Strict):
    """A host with its layers laid over each other."""

    name: HostName
    address: str
    ssh: Ssh
    groups: tuple[Name, ...]
    settings: HostSettings
