"""The outer shape of a fleet file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from modules.fleet.layers import Layers
from modules.fleet.problem import Key, Origin, Problem
from modules.fleet.tree import Tree, find
from modules.fleet.validate import validated
from modules.spec.base import is_loopback
from modules.spec.fleet import FleetFile, ResolvedHost

# pyinfra gives every host to the first, and names the second after inventory.py.
_RESERVED_GROUPS = ("all", "inventory")


def opened(tree: Tree) -> Tree:
    """Read `spark-1:` with nothing behind it as an empty mapping: a host or a group that has nothing of its own."""
    keys = dict(tree.keys or {})
    for name in ("defaults", "groups", "hosts", "secrets", "services"):
        if name in keys:
            keys[name] = _empty_mapping(keys[name])
    for name in ("groups", "hosts"):
        inner = keys.get(name)
        if inner is not None and inner.keys is not None:
            keys[name] = replace(inner, keys={key: _empty_mapping(child) for key, child in inner.keys.items()})
    return replace(tree, keys=keys)


def _empty_mapping(tree: Tree) -> Tree:
    return Tree(tree.origin, keys={}) if tree.is_null else tree


def shape_problems(tree: Tree) -> list[Problem]:
    """Tell what is wrong with the file apart from the settings in its layers."""
    hosts = tree.child("hosts")
    if hosts is None or hosts.keys == {}:
        origin = hosts.origin if hosts is not None else Origin(tree.origin.line, ("hosts",))
        empty = [Problem(origin, "the fleet is empty", "add a host: hosts: {spark-1: {address: 10.0.0.11}}")]
    else:
        empty = []
    outcome = validated(FleetFile, tree)
    wrong = outcome if isinstance(outcome, list) else []
    return empty + [p for p in wrong if not (empty and p.origin.key == ("hosts",))] + _reserved(tree)


def undeclared_passwords(layers: Layers, tree: Tree) -> Iterator[Problem]:
    """Tell which passwords of a first login are no secrets of this file. What stands there is not repeated."""
    declared = tree.child("secrets")
    known = {} if declared is None or declared.keys is None else declared.keys
    for host in layers.hosts:
        for key in ("password", "sudo_password"):
            name = layers.ssh(host).child(key)
            if name is not None and isinstance(name.scalar, str) and name.scalar not in known:
                todo = "declare it there, as in {spark-password: {env: VARIABLE}}; a password itself never stands here"
                yield Problem(name.origin, "names no secret of secrets:", todo)


def same_address(hosts: Iterable[ResolvedHost], tree: Tree) -> list[Problem]:
    """Tell which hosts are one machine under two names."""
    problems: list[Problem] = []
    seen: dict[tuple[str, int], str] = {}
    for host in hosts:
        place = (host.address.lower().rstrip("."), host.ssh.port)
        other = seen.setdefault(place, host.name)
        if other != host.name:
            origin, first = (find(tree, ("hosts", name)).origin for name in (host.name, other))
            what = f"duplicate host: {host.address} port {host.ssh.port} is {other}'s too (line {first.line})"
            problems.append(Problem(origin, what, "keep one of them, or correct the address"))
    return problems


def same_peer_address(hosts: Iterable[ResolvedHost], tree: Tree) -> list[Problem]:
    """Tell which hosts would offer images at one and the same address, as when it stands in the defaults."""
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for host in hosts:
        address = host.settings.network.peer_address
        if address is not None and (other := seen.setdefault(address, host.name)) != host.name:
            origin = find(tree, ("hosts", host.name, "settings", "network", "peer_address")).origin
            what = f"network.peer_address {address} is {other}'s too"
            problems.append(Problem(origin, what, "give each host its own, in its settings"))
    return problems


def others_listen(hosts: Sequence[ResolvedHost], layers: Layers) -> list[Problem]:
    """Tell what is to listen at another host's address, as when one host's stands in the defaults."""
    owner: dict[str, str] = {}
    for host in hosts:
        for address in (host.address, host.settings.network.peer_address):
            if address is not None and not is_loopback(address):
                owner.setdefault(address, host.name)
    problems: list[Problem] = []
    for host in hosts:
        for key, listen in _listening(host):
            if owner.get(listen, host.name) != host.name and listen != host.address:
                origin = find(layers.settings(host.name), key).origin
                what = f"{listen}, at which {host.name} is to listen, is {owner[listen]}'s address"
                problems.append(Problem(origin, what, "write 0.0.0.0, or each host's own in its settings"))
    return problems


def _listening(host: ResolvedHost) -> Iterator[tuple[Key, str]]:
    settings = host.settings
    for name, service in settings.services.items():
        yield ("services", name, "listen"), service.listen
    for name in ("exporters", "prometheus", "grafana"):
        part = getattr(settings.monitoring, name)
        if part is not None:
            yield ("monitoring", name, "listen"), part.listen
    if settings.gateway is not None:
        yield ("gateway", "listen"), settings.gateway.listen
        yield ("gateway", "metrics", "listen"), settings.gateway.metrics.listen


def _reserved(tree: Tree) -> list[Problem]:
    groups = tree.child("groups")
    names = {} if groups is None or groups.keys is None else groups.keys
    hosts = tree.child("hosts")
    host_names = {} if hosts is None or hosts.keys is None else hosts.keys
    takers = dict.fromkeys(_RESERVED_GROUPS, "pyinfra gives it to every host")
    takers |= {name: f"a host has it (line {host.origin.line})" for name, host in host_names.items()}
    ours = {name: host for name, host in host_names.items() if name in _RESERVED_GROUPS}
    return [
        Problem(tree.origin, f"the name {name} is taken: {taken}", "choose another name")
        for name, tree, taken in (
            *((name, group, takers[name]) for name, group in names.items() if name in takers),
            *((name, host, "`--limit` and `LIMIT` mean a group by it") for name, host in ours.items()),
        )
    ]
