"""Check what a fleet file's strategy says of its hosts."""

from __future__ import annotations

from modules.fleet.problem import Problem
from modules.fleet.suggest import advice
from modules.fleet.tree import Tree, find


def strategy_problems(tree: Tree) -> list[Problem]:
    """Tell which canaries are no host or group, or nobody, and that they are all hosts. Forms are told elsewhere."""
    canary = find(tree, ("strategy", "canary"))
    hosts = _keys(tree, "hosts")
    if canary.rest or not hosts:
        return []
    known = {*hosts, *_keys(tree, "groups"), "all"}
    problems = [
        Problem(item.origin, f"no host or group {item.scalar!r} in this fleet", advice(item.scalar, known, "names"))
        for item in canary.tree.items or ()
        if isinstance(item.scalar, str) and item.scalar not in known
    ]
    number = canary.tree.scalar
    whole = isinstance(number, int) and not isinstance(number, bool) and number >= len(hosts)
    meant: set[str] = set()
    for item in canary.tree.items or ():
        name = item.scalar if isinstance(item.scalar, str) else ""
        members = [host for host, its in hosts.items() if name in {host, "all", *_groups(its)}]
        if name in known and not members:
            problems.append(Problem(item.origin, f"no host is in group {name!r}", "put one in it, or name another"))
        meant |= set(members)
    if len(hosts) > 1 and (whole or len(meant) == len(hosts)):
        what = f"with every host as a canary ({len(hosts)} of {len(hosts)}), a bad release reaches all of them at once"
        problems.append(Problem(canary.origin, what, "name fewer"))
    return problems


def _groups(host: Tree) -> list[object]:
    """The groups that a host names."""
    groups = host.child("groups")
    return [] if groups is None else [item.scalar for item in groups.items or ()]


def _keys(tree: Tree, name: str) -> dict[str, Tree]:
    child = tree.child(name)
    return {} if child is None or child.keys is None else child.keys
