"""Which hosts a run is limited to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from modules.fleet import Fleet
from modules.fleet.problem import shown


def names_of(given: Iterable[str]) -> list[str]:
    """The hosts and groups that `--limit` was given, each time with commas between them."""
    return [name for value in given for name in value.split(",") if name]


def limit_problem(given: Sequence[str], fleet: Fleet) -> str | None:
    """Why a limit is refused: pyinfra takes one that leaves no host for a success. None: it is fine."""
    names = names_of(given)
    groups = sorted({group for host in fleet.hosts.values() for group in host.groups})
    nothing = unmatched(names, fleet.hosts, ["all", "inventory", *groups])
    if not nothing and (names or not given):
        return None
    known = f"hosts are: {', '.join(sorted(fleet.hosts))}" + (f"; groups are: {', '.join(groups)}" if groups else "")
    return f"{shown(fleet.path)}: no host or group matches {', '.join(nothing) or 'an empty --limit'}; {known}"


def hosts_within(limits: Iterable[str], fleet: Fleet) -> list[str]:
    """The fleet's hosts that a run is for; all of them without limits."""
    names = list(limits)
    return [
        name
        for name, host in fleet.hosts.items()
        if not names or any(limit in {"all", "inventory", *host.groups} or fnmatchcase(name, limit) for limit in names)
    ]


def unmatched(limits: Iterable[str], hosts: Iterable[str], groups: Iterable[str]) -> list[str]:
    """Those of `limits` that pyinfra would match with no host: neither a group's name nor a pattern of a host's."""
    known = list(hosts)
    names = set(groups)
    return [limit for limit in limits if limit not in names and not any(fnmatchcase(host, limit) for host in known)]
