"""The SSH connection to a host."""

from __future__ import annotations

import socket
from typing import Any

from pyinfra.api import Host
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS

KEEPALIVE_S = 15
# A connection whose host is gone says nothing at all.
_TIMEOUT_S = 60


def connector_arguments(host: Host) -> dict[str, Any]:
    """How the operation that is under way runs its commands: as whom, and for how long at most."""
    given: dict[str, Any] = dict(host.current_op_global_arguments or {})
    return {key: given[key] for key in CONNECTOR_ARGUMENT_KEYS if key in given} | {"_timeout": _TIMEOUT_S}


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
