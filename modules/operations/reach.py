"""Short commands over a connection that may break under long work."""

from __future__ import annotations

from collections.abc import Callable

from paramiko import SSHException
from pyinfra import logger
from pyinfra.api import Host, StringCommand
from pyinfra.api.exceptions import ConnectError
from pyinfra.connectors.util import CommandOutput

from modules.operations.connection import connector_arguments, keep_alive
from modules.operations.hold import BROKEN, TakenError, refuse_taken, take_again

# Long enough for a host to restart.
_WAITS_S = (1, 2, 4, 8, 15, 15, 30, 30, 30, 45, 60, 60)


class UnreachableError(Exception):
    """The host did not come back, or another run had taken it by then."""


def ask(
    host: Host, command: StringCommand, pause: Callable[[float], bool], stdin: str | None = None
) -> tuple[bool, CommandOutput]:
    """Run a short command in the way of the operation that is under way; over a new connection where the old one broke.

    The command may run twice. `stdin`: what it reads. `pause` waits the seconds that it is given and returns whether
    to go on. Returns whether the command succeeded, and its output; raises `UnreachableError` when the host did not
    answer for minutes, or when another run holds it by then.
    """
    for wait in (0, *_WAITS_S):
        if wait:
            host.log(f"connection lost; trying again in {wait} s", log_func=logger.warning)
            if not pause(wait):
                break
            if not _reconnected(host):
                continue
        try:
            refuse_taken(host)
            given = connector_arguments(host) | ({} if stdin is None else {"_stdin": stdin})
            succeeded, output = host.run_shell_command(command, **given)
            # A connection that was cut while the command ran: pyinfra takes the status that never came for a failure.
            # What fails by itself says why, over a connection that lasts; sudo complains even as its host goes down.
            if succeeded or (output.output_lines and _lasts(host)):
                return succeeded, output
        except TakenError as error:
            raise UnreachableError(str(error)) from error
        # paramiko's channels also end in EOFError and, once their transport is gone, in AttributeError.
        except (OSError, SSHException, EOFError, AttributeError) as error:
            logger.debug("%s: %s: %s", host.name, type(error).__name__, error)
    raise UnreachableError("the host does not answer any more")


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
    try:
        take_again(host)
    except TakenError as error:
        raise UnreachableError(str(error)) from error
    except BROKEN as error:
        logger.debug("%s could not be held again: %s: %s", host.name, type(error).__name__, error)
        return False
    return bool(host.connected)
