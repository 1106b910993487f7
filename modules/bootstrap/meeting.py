"""Meeting the hosts: which key each shows, and whether that is to be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from modules.bootstrap.connection import Route, route_of, shown_key
from modules.bootstrap.host_keys import HostKey, Trust, known_keys, trust
from modules.bootstrap.refusal import RefusedError
from modules.fleet.problem import shown
from modules.spec.fleet import ResolvedHost

_AT_ONCE = 32
CONSOLE = "for each in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $each; done"


@dataclass(frozen=True)
class Met:
    """A host that has shown a key. `route`: where it was found."""

    host: ResolvedHost
    route: Route
    key: HostKey
    trust: Trust


def meet(hosts: Sequence[ResolvedHost]) -> dict[str, Met | RefusedError]:
    """Have each host show its key; nobody logs in. Those that can not be reached, or show another key, are refused."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return dict(zip((host.name for host in hosts), pool.map(_met, hosts), strict=True))


def _met(host: ResolvedHost) -> Met | RefusedError:
    try:
        route = route_of(host)
        key = shown_key(host, route)
    except RefusedError as error:
        return error
    judged = trust(key, known_keys(route.files, route.name), host.ssh.host_key)
    return _changed(host, route, key) if judged is Trust.CHANGED else Met(host, route, key, judged)


def _changed(host: ResolvedHost, route: Route, key: HostKey) -> RefusedError:
    holder = shown(route.files[0])
    by_file = host.ssh.host_key is not None and key.fingerprint != host.ssh.host_key
    what = (
        f"CHANGED HOST KEY: it shows {key.short_kind} {key.fingerprint}, and "
        f"{'host_key in the fleet file' if by_file else holder} has another one"
    )
    forget = "correct host_key" if by_file else f"ssh-keygen -R '{route.name}' -f {holder}"
    return RefusedError(
        what,
        "no password was given to it. If the host was installed anew, compare with its console "
        f"({CONSOLE}), then: {forget}. If not, another machine answers in its place: do not go on",
    )


def confirmation(new: Sequence[Met]) -> list[str]:
    """The lines that ask for hosts whose key nobody here knows: all of them at once."""
    width = max(len(met.host.name) for met in new)
    place = max(len(met.route.name) for met in new)
    kind = max(len(met.key.short_kind) for met in new)
    lines = [
        "met for the first time; compare each fingerprint with what the host itself says, at its console:",
        f"    {CONSOLE}",
    ]
    lines += [
        f"  {met.host.name:<{width}}  {met.route.name:<{place}}  {met.key.short_kind:<{kind}}  {met.key.fingerprint}"
        for met in new
    ]
    return [*lines, *twins({met.host.name: met for met in new})]


def twins(met: Mapping[str, Met]) -> list[str]:
    """Hosts that show one and the same key: one machine under two names, or copies of one disk."""
    names: dict[str, list[str]] = {}
    for name, one in met.items():
        names.setdefault(one.key.text, []).append(name)
    return [
        f"  {' and '.join(same)} show the same key: one machine under two names, or disks copied with their keys"
        for same in names.values()
        if len(same) > 1
    ]


def unconfirmed(met: Met) -> RefusedError:
    """A new key, and nobody who could say that it is the right one."""
    return RefusedError(
        f"its host key is not known here ({met.key.short_kind} {met.key.fingerprint}), and was not confirmed",
        f"compare it with its console ({CONSOLE}); then run this at a terminal, or write it under "
        f"hosts.{met.host.name}: ssh: {{host_key: '{met.key.fingerprint}'}}",
    )
