"""Which hosts of a run have a server whose place a service is to take; said by the run itself."""

from __future__ import annotations

from pyinfra.api import Host

_taking: set[str] = set()


def note_taking(host: Host) -> None:
    """From now on this host has one."""
    _taking.add(host.name)


def takes_over(host: Host) -> bool:
    """Whether it has one."""
    return host.name in _taking
