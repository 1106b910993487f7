"""The layers of a fleet file: defaults, then groups in the host's order, then the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from modules.catalog import Catalog
from modules.fleet.names import name_problems
from modules.fleet.problem import Problem
from modules.fleet.suggest import advice, nearest
from modules.fleet.tree import Tree, find, overlay, without_nulls
from modules.fleet.validate import layer_problems
from modules.spec.settings import HostSettings


class Layers:
    """Lays one file's layers over each other. Parts with a wrong shape, told elsewhere, are passed over."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._groups = _mapping(tree, "groups")
        self._hosts = _mapping(tree, "hosts")
        self._services = _mapping(tree, "services")
        self._placement: Mapping[str, Sequence[str]] = {}
        self.hosts = tuple(self._hosts.keys or {})

    def problems(self, catalog: Catalog) -> list[Problem]:
        """Tell what is wrong with each layer by itself, used or not, and with the names of groups."""
        secrets = tuple(_mapping(self._tree, "secrets").keys or {})
        found = self._unknown_groups()
        for layer in (_mapping(self._tree, "defaults"), *_mappings(self._groups), *self._own_settings()):
            found += layer_problems(HostSettings, without_nulls(layer))
            found += name_problems(layer, catalog, secrets)
            found += self._unknown_builder(layer)
        found += name_problems(self._tree, catalog, secrets)
        return found + self._in_two_places()

    def _in_two_places(self) -> list[Problem]:
        everywhere = _mapping(_mapping(self._tree, "defaults"), "services").keys or {}
        return [
            Problem(
                everywhere[name].origin, f"service {name} is one of the fleet's own services too", "keep one of them"
            )
            for name in self.unplaced
            if name in everywhere and not everywhere[name].is_null
        ]

    def _own_settings(self) -> list[Tree]:
        return [_mapping(host, "settings") for host in _mappings(self._hosts)]

    def groups(self, host: str) -> tuple[str, ...]:
        """Name the host's groups that there are, in its order."""
        return tuple(name for name, tree in self._named(host) if tree is not None)

    def address(self, host: str) -> str:
        """Give where the host is: its address, or else its name."""
        address = self._host(host).child("address")
        return host if address is None or address.is_null else str(address.scalar)

    def ssh(self, host: str) -> Tree:
        """Give how the host is reached."""
        return overlay(_mapping(self._tree, "ssh"), _mapping(self._host(host), "ssh"))

    def settings(self, host: str) -> Tree:
        """Give the host's settings; of the fleet's own services those that were placed on it."""
        return self._settings(host, {name for name, hosts in self._placement.items() if host in hosts})

    def place(self, placement: Mapping[str, Sequence[str]]) -> None:
        """Put the fleet's own services on these hosts: service → hosts."""
        self._placement = placement

    @property
    def unplaced(self) -> tuple[str, ...]:
        """The fleet's own services, which no host has by its layers alone."""
        return tuple(self._services.keys or {})

    def candidate(self, host: str, service: str) -> Tree | None:
        """Give one of them as the host would have it; None where a layer of the host takes it away."""
        services = self._settings(host, {service}).child("services")
        return None if services is None else services.child(service)

    def _settings(self, host: str, placed: Set[str]) -> Tree:
        own = {name: _as_placed(tree) for name, tree in (self._services.keys or {}).items() if name in placed}
        keys = {"services": Tree(self._services.origin, keys=own)} if own else {}
        merged = overlay(Tree(self._host(host).origin.under("settings"), keys=keys), _mapping(self._tree, "defaults"))
        for _, group in self._named(host):
            if group is not None:
                merged = overlay(merged, group)
        merged = overlay(merged, _mapping(self._host(host), "settings"))
        return self._without_others(merged, placed)

    def _without_others(self, settings: Tree, placed: Set[str]) -> Tree:
        """Leave out what layers say of the fleet's services that are elsewhere."""
        services, elsewhere = settings.child("services"), set(self.unplaced) - placed
        if services is None or not elsewhere & set(services.keys or {}):
            return settings
        kept = {name: tree for name, tree in (services.keys or {}).items() if name not in elsewhere}
        return replace(settings, keys={**(settings.keys or {}), "services": replace(services, keys=kept)})

    def _host(self, name: str) -> Tree:
        host = (self._hosts.keys or {})[name]
        return host if host.keys is not None else Tree(host.origin, keys={})

    def _named(self, host: str) -> list[tuple[str, Tree | None]]:
        listed = self._host(host).child("groups")
        names = [item.scalar for item in (listed.items or ())] if listed is not None else []
        return [(name, self._groups.child(name)) for name in names if isinstance(name, str)]

    def _unknown_builder(self, layer: Tree) -> list[Problem]:
        place = find(layer, ("image", "builder"))
        name = place.tree.text
        if place.rest or not isinstance(name, str) or name in self.hosts:
            return []
        return [Problem(place.origin, f"no host {name!r} in this fleet", advice(name, self.hosts, "hosts"))]

    def unknown_services(self) -> list[Problem]:
        """Tell what a layer says of a service that no layer gives an engine: probably another one is meant."""
        layers = (_mapping(self._tree, "defaults"), *_mappings(self._groups), *self._own_settings())
        services = [_mapping(layer, "services").keys or {} for layer in (self._tree, *layers)]
        said = [(name, service) for layer in services for name, service in layer.items()]
        whole = {name for name, service in said if service.child("engine") is not None}
        return [
            Problem(service.origin, f"no layer gives a service {name!r} an engine", _meant(name, whole))
            for name, service in said
            if name not in whole and (nearest(name, whole) is not None or service.child("model") is None)
        ]

    def _unknown_groups(self) -> list[Problem]:
        known = self._groups.keys or {}
        return [
            Problem(item.origin, f"unknown group {item.scalar!r}", advice(item.scalar, known, "groups"))
            for host in _mappings(self._hosts)
            for item in ((host.child("groups") or host).items or ())
            if isinstance(item.scalar, str) and item.scalar not in known
        ]


def _meant(service: str, whole: set[str]) -> str:
    meant = nearest(service, whole)
    return f"did you mean {meant}?" if meant is not None else "add engine: and model: here, or take it out"


def _as_placed(service: Tree) -> Tree:
    """A service as a host has it: without how many there are, and where."""
    keys = {key: child for key, child in (service.keys or {}).items() if key not in {"replicas", "on"}}
    return service if service.keys is None else replace(without_nulls(service), keys=keys)


def _mapping(tree: Tree, key: str) -> Tree:
    child = tree.child(key)
    return child if child is not None and child.keys is not None else Tree(tree.origin.under(key), keys={})


def _mappings(tree: Tree) -> list[Tree]:
    return [child for child in (tree.keys or {}).values() if child.keys is not None]
