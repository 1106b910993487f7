"""The SSH connection to a host."""

from __future__ import annotations

import socket

from pyinfra.api import Host

KEEPALIVE_S = 15


def keep_alive(host: Host) -> None:
    """Send small packets at once, and something every 15 s.

    paramiko leaves Nagle's algorithm on, which costs 45 ms for each command; and firewalls forget a connection that is
    silent during an hour of building. Connections without a socket of SSH (`@local`, `@fake`, a proxy command) are left
    as they are.
    """
    client = getattr(host.connector, "client", None)
    transport = client.get_transport() if client is not None else None
    if transport is None:
        return
    transport.set_keepalive(KEEPALIVE_S)
    if hasattr(transport.sock, "setsockopt"):
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
