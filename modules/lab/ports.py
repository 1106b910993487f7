"""Loopback ports for the hosts' sshd, and for the mirror."""

from __future__ import annotations

import socket

from modules.lab.errors import LabError
from modules.lab.layout import DEFAULT_NAME

_DEFAULT_FIRST = 22020
_OTHERS_FIRST, _OTHERS_LAST = 22120, 22999


def choose_port(name: str, number: int, taken: set[int]) -> int:
    """A port for host `number` (0: the mirror): 22020 + number in the lab of the default name, any free one in others.

    `taken`: ports that labs' containers have, running or not.

    Raises:
        LabError: it is taken, or none is free.

    """
    if name == DEFAULT_NAME:
        port = _DEFAULT_FIRST + number
        if port in taken or not _free(port):
            raise LabError(
                f"port {port} on 127.0.0.1 is taken by another program: end that, or give the lab another name (--name)"
            )
        return port
    for port in range(_OTHERS_FIRST, _OTHERS_LAST + 1):
        if port not in taken and _free(port):
            return port
    raise LabError(f"no free port between {_OTHERS_FIRST} and {_OTHERS_LAST} on 127.0.0.1: take down another lab")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
