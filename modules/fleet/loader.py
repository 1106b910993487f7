"""Load a fleet file: read it, lay its layers over each other, check all of it, tell all that is wrong at once."""

from __future__ import annotations

import functools
import os
from dataclasses import replace
from pathlib import Path

from modules.catalog import Catalog, load_catalog
from modules.fleet.check import settings_problems
from modules.fleet.fleet import Fleet
from modules.fleet.inline_secret import inline_secrets
from modules.fleet.layers import Layers
from modules.fleet.problem import FleetError, Problem
from modules.fleet.resolve import Resolver
from modules.fleet.shape import opened, shape_problems
from modules.fleet.source import read_tree
from modules.fleet.tree import Tree
from modules.fleet.validate import validated
from modules.spec.fleet import FleetFile, ResolvedHost, Ssh
from modules.spec.settings import HostSettings

DEFAULT_FLEET = Path("inventory/lab.yaml")


def load_fleet(path: Path | None = None) -> Fleet:
    """Load a fleet file, once a process.

    `path`: where it is; without one, what TINDERBOX_FLEET says, else the lab's.

    Raises `FleetError`: with all problems, each `file:line: key.path: what is wrong; what to do`.
    """
    wanted = path or Path(os.environ.get("TINDERBOX_FLEET") or _root() / DEFAULT_FLEET)
    return _load(wanted.expanduser().absolute())


def _root() -> Path:
    return Path(__file__).resolve().parents[2]


@functools.cache
def _load(path: Path) -> Fleet:
    tree = opened(read_tree(path))
    reading = _Reading(path, tree, load_catalog())
    fleet = reading.fleet()
    if reading.problems:
        raise FleetError(path, reading.told())
    return fleet


class _Reading:
    """One pass over a fleet file. `problems`: all that was found wrong so far."""

    def __init__(self, path: Path, tree: Tree, catalog: Catalog) -> None:
        self._path = path
        self._tree = tree
        self._catalog = catalog
        self.problems: list[Problem] = []

    def fleet(self) -> Fleet:
        found = list(inline_secrets(self._tree))
        self._hidden = [str(value.scalar) for value, _ in found if value.scalar is not None]
        self._inline = {problem.origin: problem for _, problem in found}
        self.problems += [problem for _, problem in found]
        self.problems += shape_problems(self._tree)
        file = validated(FleetFile, self._tree)
        secrets = {} if isinstance(file, list) else file.secrets
        hosts = self._hosts()
        lines = {name: child.origin for name, child in _keys(self._tree.child("secrets")).items()}
        name = "" if isinstance(file, list) else file.fleet
        fleet = Fleet(name=name, path=self._path, hosts=hosts, secrets=secrets, lines=lines)
        if not self.problems:
            self._fetch_secrets(fleet)
        return fleet

    def told(self) -> list[Problem]:
        """Give the problems without any secret's value, and one for each inline secret."""
        kept = [p for p in self.problems if p.origin not in self._inline or p in self._inline.values()]
        return [replace(p, what=self._masked(p.what), todo=self._masked(p.todo)) for p in kept]

    def _masked(self, text: str) -> str:
        for value in self._hidden:
            text = text.replace(value, "(hidden)")
        return text

    def _hosts(self) -> dict[str, ResolvedHost]:
        layers = Layers(self._tree)
        self.problems += layers.problems()
        hosts: dict[str, ResolvedHost] = {}
        for name in _keys(self._tree.child("hosts")):
            host = self._host(name, layers)
            if host is not None:
                hosts[name] = host
        self.problems += _same_address(hosts, self._tree)
        return hosts

    def _host(self, name: str, layers: Layers) -> ResolvedHost | None:
        ssh_tree, settings_tree = layers.ssh(name), layers.settings(name)
        ssh, settings = validated(Ssh, ssh_tree), validated(HostSettings, settings_tree)
        if isinstance(ssh, list) or isinstance(settings, list):
            self.problems += [p for part in (ssh, settings) if isinstance(part, list) for p in part]
            return None
        address = layers.address(name)
        declared = tuple(_keys(self._tree.child("secrets")))
        self.problems += settings_problems(settings, address, declared, self._catalog, settings_tree)
        resolver = Resolver(self._path.parent, settings.hardware.simulated)
        ssh, settings = resolver.ssh(ssh, ssh_tree), resolver.settings(settings, settings_tree)
        self.problems += resolver.problems
        return ResolvedHost.model_construct(
            name=name, address=address, ssh=ssh, groups=layers.groups(name), settings=settings
        )

    def _fetch_secrets(self, fleet: Fleet) -> None:
        for name in sorted(_used_secrets(fleet, self._catalog)):
            try:
                fleet.secret(name)
            except FleetError as error:
                self.problems += error.problems


def _used_secrets(fleet: Fleet, catalog: Catalog) -> set[str]:
    used: set[str | None] = set()
    for host in fleet.hosts.values():
        for service in host.settings.services.values():
            model = catalog.models.get(service.model) if isinstance(service.model, str) else service.model
            used |= {service.api_key, model.token if model is not None else None}
    return {name for name in used if name is not None}


def _same_address(hosts: dict[str, ResolvedHost], tree: Tree) -> list[Problem]:
    problems: list[Problem] = []
    seen: dict[tuple[str, int], str] = {}
    keys = _keys(tree.child("hosts"))
    for name, host in hosts.items():
        place = (host.address.lower().rstrip("."), host.ssh.port)
        if place in seen:
            other = seen[place]
            origin = keys[name].origin
            what = (
                f"duplicate host: {host.address} port {host.ssh.port} is {other}'s too (line {keys[other].origin.line})"
            )
            problems.append(Problem(origin, what, "keep one of them, or correct the address"))
        else:
            seen[place] = name
    return problems


def _keys(tree: Tree | None) -> dict[str, Tree]:
    return {} if tree is None or tree.keys is None else tree.keys
