"""`python -m modules.bootstrap`: open hosts of which there is only a user and a password."""

from __future__ import annotations

from modules.converge.early import heed

# isort: split
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import paramiko
import typer

from modules.bootstrap.first_login import open_host
from modules.bootstrap.host_keys import Trust, remember
from modules.bootstrap.meeting import Met, confirmation, meet, unconfirmed
from modules.bootstrap.own_keys import USUAL, OwnKeys, make_key, own_keys
from modules.bootstrap.passwords import Passwords
from modules.bootstrap.refusal import RefusedError
from modules.bootstrap.settings import fleet_to_begin
from modules.converge.asked import refused
from modules.converge.limits import hosts_within, limit_problem, names_of
from modules.converge.lock import HeldError, held
from modules.converge.process import INTERRUPTED
from modules.converge.program import start
from modules.converge.run import one_pass
from modules.converge.tell import say, tell_pass
from modules.fleet import Fleet, FleetError
from modules.fleet.problem import shown
from modules.operations.asked import OPENED
from modules.spec.fleet import Ssh

_DEPLOY = "deploys/bootstrap.py"
_FAILED = 1


def main(
    limit: Annotated[list[str] | None, typer.Option(help="only these hosts or groups; may repeat")] = None,
    *,
    first_login: Annotated[bool, typer.Option("--first-login", help="that alone; what follows by key is left")] = False,
) -> None:
    """Have every host of the fleet take your key, and its sudo ask nothing; host keys are shown for confirmation.

    Exit status: 0 all hosts are open; 1 one was refused, and is told with what to do; 130 interrupted.
    """
    heed()
    given = limit or []
    try:
        fleet, made = fleet_to_begin()
    except FleetError as error:
        raise refused(f"{error}\n\nno host was contacted") from error
    problem = limit_problem(given, fleet)
    if problem is not None:
        raise refused(problem)
    say(f"fleet {fleet.name}: {shown(fleet.path)}", "dim")
    for path in made:
        say(f"made {shown(path)}", "dim")
    try:
        with held(fleet, _DEPLOY):
            status = _bootstrapped(fleet, hosts_within(names_of(given), fleet), first_login=first_login)
    except HeldError as error:
        raise refused(str(error)) from error
    except KeyboardInterrupt as error:
        say("interrupted; what was done so far holds, and the next run goes on from there", "yellow")
        raise typer.Exit(INTERRUPTED) from error
    raise typer.Exit(status)


def _bootstrapped(fleet: Fleet, names: Sequence[str], *, first_login: bool) -> int:
    found = meet([fleet.hosts[name] for name in names])
    refused = {name: one for name, one in found.items() if isinstance(one, RefusedError)}
    for name, error in refused.items():
        _tell(name, error)
    met, denied = _trusted({name: one for name, one in found.items() if isinstance(one, Met)})
    refused |= denied
    passwords = Passwords.at_terminal(fleet)
    opened = [name for name, one in met.items() if _opened(one, passwords, refused)]
    status = _FAILED if refused else 0
    if first_login:
        return status
    if opened:
        os.environ[OPENED] = "1"
        done = one_pass(_DEPLOY, opened, dry=False)
        tell_pass(done)
        if done.interrupted:
            return INTERRUPTED
        status = status if done.succeeded else _FAILED
        failed = done.stopped
    else:
        failed = []
    for name in names:
        if name in refused:
            say(f"{name}: NOT OPEN: {refused[name].what}", "red")
        elif name not in failed:
            say(f"{name}: open; no password is used again", "green")
    if status == 0:
        say(f"next: make converge FLEET={shown(fleet.path)}", "cyan")
    return status


def _trusted(met: Mapping[str, Met]) -> tuple[dict[str, Met], dict[str, RefusedError]]:
    """Those whose key is the right one: new ones by one confirmation of all; they are written to known_hosts."""
    new = [one for one in met.values() if one.trust is Trust.NEW]
    agreed = True
    if new:
        for line in confirmation(new):
            say(line, "yellow")
        agreed = sys.stdin.isatty() and typer.confirm(f"Trust {_these(len(new))}?", err=True)
    refused = {} if agreed else {one.host.name: unconfirmed(one) for one in new}
    for name, error in refused.items():
        _tell(name, error)
    trusted = {name: one for name, one in met.items() if name not in refused}
    files: dict[Path, list[Met]] = {}
    for one in trusted.values():
        if one.trust is not Trust.KNOWN:
            files.setdefault(one.route.files[0], []).append(one)
    for file, ones in files.items():
        remember(file, [(one.route.name, one.key) for one in ones])
    return trusted, refused


def _these(number: int) -> str:
    return "this key" if number == 1 else f"these {number} keys"


def _opened(met: Met, passwords: Passwords, refused: dict[str, RefusedError]) -> bool:
    name = met.host.name
    try:
        open_host(met.host, met.key, _keys(met.host.ssh), passwords, lambda text: say(f"{name}: {text}", "green"))
    except RefusedError as error:
        refused[name] = error
        _tell(name, error)
        return False
    except (OSError, EOFError, paramiko.SSHException) as error:
        # The others are opened all the same.
        broke = f"the connection broke, or this machine's key could not be read ({type(error).__name__}: {error})"
        refused[name] = RefusedError(broke, "run this again; what was done so far holds")
        _tell(name, refused[name])
        return False
    return True


def _keys(ssh: Ssh) -> OwnKeys:
    """The owner's keys; where there is none at all, one is made where every program looks for it."""
    keys = own_keys(ssh)
    if keys is not None:
        return keys
    path = Path.home() / ".ssh" / USUAL[0]
    if path.exists():
        raise RefusedError(f"key {path} has a passphrase", "give it to your SSH agent: ssh-add, then run this again")
    make_key(path)
    say(f"made {path}: there was no key of yours", "dim")
    keys = own_keys(ssh)
    assert keys is not None
    return keys


def _tell(name: str, error: RefusedError) -> None:
    say(f"{name}: {error.what}", "red")
    say(f"{name}: {error.todo}", "red")


if __name__ == "__main__":
    start(main)
