"""Hold a host for this run, so that two controllers do not change it at the same time."""

from __future__ import annotations

import getpass
import json
import os
import socket
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import gevent
from paramiko import Channel, SSHException
from pyinfra import host, logger, state
from pyinfra.api import Host, QuoteString, StringCommand, operation
from pyinfra.connectors.util import make_unix_command_for_host

from modules.fleet import load_fleet
from modules.operations.reach import connector_arguments
from modules.operations.require import refusal
from modules.spec.holder import HOLD, HOLDER, LOCK, Holder, parse_holder

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
_held: dict[str, Channel] = {}


@operation()
def host_held() -> Generator[StringCommand, None, None]:
    """Have no other controller's run change this host while this one lasts; refuse it where one does already.

    Nothing is left on the host, and it is no change: it ends with the connection. A dry run holds nothing.
    """
    if (
        os.environ.get(HOLD) == "0"
        or not state.is_executing
        or host.name in _held
        or getattr(host.connector, "client", None) is None
    ):
        host.noop("held while a run changes it")
        return
    try:
        answer = _ask(host, _holder().document())
    except (OSError, SSHException, EOFError, ValueError, KeyError, AttributeError) as error:
        yield refusal(f"{host.name}: it could not be held for this run: {type(error).__name__}: {error}")
        return
    if not answer["holds"]:
        yield refusal(f"{host.name}: {held_text(answer.get('holder'), time.time())}")


def held_text(found: object, now: float) -> str:
    """Who holds a host, and what to do."""
    holder = parse_holder(json.dumps(found))
    who = holder.text(now) if holder is not None else "one that does not say who it is"
    return (
        f"another run changes this host: {who}. Nothing was changed here. Wait until that run has ended, or end it "
        "there with Ctrl-C; where its machine died, the host is free again within 2 minutes. Then run again."
    )


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


def _ask(host: Host, holder: str) -> dict[str, Any]:
    """Start the program that holds the host; gives its answer. ValueError: it gave none."""
    program = _PROGRAM.read_bytes()
    document = json.dumps(json.loads(holder) | ({"lock": os.environ[LOCK]} if LOCK in os.environ else {}))
    command = StringCommand("python3", "-c", QuoteString(_FROM_INPUT), str(len(program)), QuoteString(document))
    arguments = {key: value for key, value in connector_arguments(host).items() if key not in _OF_THE_CONNECTOR}
    shell = make_unix_command_for_host(host.state, host, command, **arguments)
    channel = host.connector.client.get_transport().open_session(timeout=_ANSWER_S)  # type: ignore[attr-defined]
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
    if answer["holds"]:
        _keep(host.name, channel)
    return answer


def _keep(name: str, channel: Channel) -> None:
    if not _held:
        gevent.spawn(_say_that_we_are_here)
    _held[name] = channel


def _say_that_we_are_here() -> None:
    while _held:
        gevent.sleep(_ALIVE_S)
        for name, channel in list(_held.items()):
            try:
                channel.sendall(b"\n")
            except (OSError, SSHException, EOFError) as error:
                # Its connection is made anew by whoever needs it; the host is let go until then.
                logger.debug("%s is held no more: %s", name, error)
                _held.pop(name, None)
