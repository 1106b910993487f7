"""That no other controller changes a host during this run: with its connection, and again with every later one."""

from __future__ import annotations

import getpass
import json
import os
import socket
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gevent
from paramiko import Channel, SSHException
from pyinfra import logger
from pyinfra.api import Host, QuoteString, StringCommand
from pyinfra.api.exceptions import PyinfraError
from pyinfra.connectors.util import make_unix_command_for_host

from modules.fleet import load_fleet
from modules.operations.connection import connector_arguments
from modules.spec.holder import HOLDER, LOCK, Holder, parse_holder

_PROGRAM = Path(__file__).parents[1] / "hostside" / "hold_host.py"
# It goes by standard input: sudo writes down what stands in a command, and the host has none of our programs yet.
_FROM_INPUT = (
    "import os,sys;t=b'';n=int(sys.argv.pop(1))\n"
    "while len(t)<n:t+=os.read(0,n-len(t)) or sys.exit('nothing to run')\n"
    "exec(t)"
)
# What pyinfra's connector takes for itself, and no shell command has.
_OF_THE_CONNECTOR = {"_timeout", "_stdin", "_get_pty", "_success_exit_codes"}
_ANSWER_S, _ALIVE_S = 60.0, 20.0
_LONGEST = 65_536
# Tells a run without a lock of its controller from all others, so that it may take a host from its own lost connection.
_THIS_RUN = uuid.uuid4().hex
BROKEN = (OSError, SSHException, EOFError, ValueError, KeyError, AttributeError)
"""How it shows that a host can not be asked to be held."""


class TakenError(Exception):
    """Another run holds the host; the text says who, and what to do."""


@dataclass
class Hold:
    """A host that this run holds. `arguments`: as whom; `channel`: over which connection."""

    host: Host
    arguments: dict[str, Any]
    channel: Channel


_holds: dict[str, Hold] = {}
# Hosts that others took while this run could not say that it is there: why no command goes to them any more.
_taken: dict[str, str] = {}


def is_held(name: str) -> bool:
    """Whether this run has taken that host."""
    return name in _holds


def refuse_taken(host: Host) -> None:
    """Raise `TakenError` where another run took the host from this one."""
    if host.name in _taken:
        raise TakenError(_taken[host.name])


def take(host: Host) -> None:
    """Hold the host from now on, in the way of the operation that is under way.

    Raises one of `BROKEN`, or `TakenError`.
    """
    given = connector_arguments(host)
    arguments = {key: value for key, value in given.items() if key not in _OF_THE_CONNECTOR}
    hold = Hold(host, arguments, _asked(host, arguments, "Nothing was changed here."))
    _taken.pop(host.name, None)
    _holds[host.name] = hold
    # Each by itself: the host that is slow to be taken again must not have the others take this run for gone.
    gevent.spawn(_say_that_we_are_here, hold)


def take_again(host: Host) -> None:
    """Hold the host over its new connection, where it was held over the one that broke. Raises as `take` does."""
    refuse_taken(host)
    hold = _holds.get(host.name)
    if hold is None:
        return
    with suppress(*BROKEN):
        hold.channel.close()
    try:
        hold.channel = _asked(host, hold.arguments, "This run's connection broke, and it goes on no further here.")
    except TakenError as error:
        _lost(hold, error)
        raise


def keep(hold: Hold) -> None:
    """Say to a host that is held that this run is there; take it again where it has given up hearing it.

    A host lets go of a run that is silent for long, as of a laptop that slept, also where the connection lasts.
    """
    try:
        hold.channel.sendall(b"\n")
    except BROKEN as error:
        logger.debug("%s is held no more: %s", hold.host.name, error)
        _take_again_if_reached(hold)


def _take_again_if_reached(hold: Hold) -> None:
    client = getattr(hold.host.connector, "client", None)
    transport = client.get_transport() if client is not None else None
    if transport is None or not transport.is_active():
        return  # whoever makes the connection anew takes it again
    try:
        take_again(hold.host)
    except TakenError as error:
        hold.host.log(str(error), log_func=logger.error)
        # The operations to come leave it out. That there may be no host left is the run's to see.
        with suppress(PyinfraError):
            hold.host.state.fail_hosts({hold.host})
    except BROKEN as error:
        logger.debug("%s could not be held again: %s", hold.host.name, error)


def _lost(hold: Hold, error: TakenError) -> None:
    _holds.pop(hold.host.name, None)
    _taken[hold.host.name] = str(error)


def _say_that_we_are_here(hold: Hold) -> None:
    while _holds.get(hold.host.name) is hold:
        gevent.sleep(_ALIVE_S)
        if _holds.get(hold.host.name) is hold:
            keep(hold)


def held_text(found: object, now: float, so_far: str = "Nothing was changed here.") -> str:
    """Who holds a host, and what to do. `so_far`: what became of this run there."""
    holder = parse_holder(json.dumps(found))
    who = holder.text(now) if holder is not None else "one that does not say who it is"
    return (
        f"another run changes this host: {who}. {so_far} Wait until that run has ended, or end it "
        "there with Ctrl-C; where its machine died, the host is free again within 2 minutes. Then run again."
    )


@cache
def _holder() -> Holder:
    given = parse_holder(os.environ.get(HOLDER, ""))
    if given is not None:
        return given
    deploys = [word for word in sys.argv if word.endswith(".py") and Path(word).name != "inventory.py"]
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    fleet = str(load_fleet().path.resolve())
    return Holder(user, socket.gethostname(), os.getpid(), " ".join(deploys) or "a deploy", time.time(), fleet)


def _asked(host: Host, arguments: dict[str, Any], so_far: str) -> Channel:
    """Start the program that holds the host; gives what it hangs on. ValueError: it gave no answer."""
    program = _PROGRAM.read_bytes()
    document = json.dumps(json.loads(_holder().document()) | {"lock": os.environ.get(LOCK, _THIS_RUN)})
    command = StringCommand("python3", "-c", QuoteString(_FROM_INPUT), str(len(program)), QuoteString(document))
    shell = make_unix_command_for_host(host.state, host, command, **arguments)
    channel: Channel = host.connector.client.get_transport().open_session(timeout=_ANSWER_S)  # type: ignore[attr-defined]
    channel.settimeout(_ANSWER_S)
    channel.exec_command(shell.get_raw_value())
    channel.sendall(program)
    said = b""
    while not said.endswith(b"\n"):
        more = channel.recv(_LONGEST)
        if not more:
            raise ValueError((said + channel.recv_stderr(_LONGEST)).decode("utf-8", "replace").strip() or "no answer")
        said += more
    answer: dict[str, Any] = json.loads(said)
    if not answer["holds"]:
        raise TakenError(held_text(answer.get("holder"), time.time(), so_far))
    return channel
