"""Short commands over a connection that may break under long work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramiko import SSHException
from pyinfra import logger
from pyinfra.api import Host, StringCommand
from pyinfra.api.arguments import CONNECTOR_ARGUMENT_KEYS
from pyinfra.api.exceptions import ConnectError
from pyinfra.connectors.util import CommandOutput

from modules.operations.connection import keep_alive

# A connection whose host is gone says nothing at all.
_TIMEOUT_S = 60
# Long enough for a host to restart.
_WAITS_S = (1, 2, 4, 8, 15, 15, 30, 30, 30, 45, 60, 60)


class UnreachableError(Exception):
    """The host did not come back."""


def ask(
    host: Host, command: StringCommand, pause: Callable[[float], bool], stdin: str | None = None
) -> tuple[bool, CommandOutput]:
    """Run a short command in the way of the operation that is under way; over a new connection where the old one broke.

    The command may run twice. `stdin`: what it reads. `pause` waits the seconds that it is given and returns whether
    to go on. Returns whether the command succeeded, and its output; raises `UnreachableError` when the host did not
    answer for minutes.
    """
    for wait in (0, *_WAITS_S):
        if wait:
            host.log(f"connection lost; trying again in {wait} s", log_func=logger.warning)
            if not pause(wait):
                break
            if not _reconnected(host):
                continue
        try:
            given = connector_arguments(host) | ({} if stdin is None else {"_stdin": stdin})
            succeeded, output = host.run_shell_command(command, **given)
            # A connection that was cut while the command ran: pyinfra takes the status that never came for a failure.
            # What fails by itself says why, over a connection that lasts; sudo complains even as its host goes down.
            if succeeded or (output.output_lines and _lasts(host)):
                return succeeded, output
        # paramiko's channels also end in EOFError and, once their transport is gone, in AttributeError.
        except (OSError, SSHException, EOFError, AttributeError) as error:
            logger.debug("%s: %s: %s", host.name, type(error).__name__, error)
    raise UnreachableError("the host does not answer any more")


def connector_arguments(host: Host) -> dict[str, Any]:
    """How the operation that is under way runs its commands: as whom, and for how long at most."""
    given: dict[str, Any] = dict(host.current_op_global_arguments or {})
    return {key: given[key] for key in CONNECTOR_ARGUMENT_KEYS if key in given} | {"_timeout": _TIMEOUT_S}


def _lasts(host: Host) -> bool:
    client = getattr(host.connector, "client", None)
    transport = client.get_transport() if client is not None else None
    return client is None or (transport is not None and transport.is_active())


def _reconnected(host: Host) -> bool:
    host.connector.disconnect()  # forgets the file transfer channel of the old connection
    host.connected = False
    try:
        host.connect(reason="again, to follow its job", raise_exceptions=True)
    except ConnectError:
        return False
    keep_alive(host)
    return bool(host.connected)
