"""Restarting a host."""

from __future__ import annotations

from modules.lab import daemon
from modules.lab.containers import hosts_of
from modules.lab.errors import LabError
from modules.lab.layout import Layout
from modules.lab.readiness import await_host

_SHUTDOWN_SECONDS = 60


def restart(layout: Layout, host: str) -> None:
    """Restart a host and wait until it is back: systemd shuts down and boots; disks, address and ports stay.

    Raises:
        LabError: there is no such host, or it does not come back.

    """
    client = daemon.connect()
    hosts = {} if client is None else hosts_of(client, layout)
    if host not in hosts:
        raise LabError(f"lab {layout.name} has no host {host!r}; it has: {', '.join(hosts) or 'none, it is not up'}")
    hosts[host].restart(timeout=_SHUTDOWN_SECONDS)
    await_host(hosts[host])
