"""Passwords of the first login: from the fleet file's secrets or the terminal. They live in this process alone."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Iterator

from modules.bootstrap.refusal import RefusedError
from modules.fleet import Fleet, FleetError
from modules.spec.fleet import ResolvedHost

# How often the terminal is asked for one password; sshd and sudo end it at three, too.
TRIES = 3


class Passwords:
    """What one run asks and knows of passwords. `ask`: for a question, as getpass; None: there is no terminal."""

    def __init__(self, fleet: Fleet, ask: Callable[[str], str] | None) -> None:
        self._fleet = fleet
        self._ask = ask
        self._before: dict[str, str] = {}

    @classmethod
    def at_terminal(cls, fleet: Fleet) -> Passwords:
        """Those that somebody at this process's terminal is asked for, if there is one."""
        return cls(fleet, getpass.getpass if sys.stdin.isatty() else None)

    def of_login(self, host: ResolvedHost) -> Iterator[str]:
        """The user's password: the secret, and no other; else what the terminal says, a few times."""
        if host.ssh.password is not None:
            yield self._secret(host.ssh.password)
        else:
            yield from self._asked("password", f"Password of {host.ssh.user} on {host.name} ({host.address}): ", TRIES)

    def of_sudo(self, host: ResolvedHost, of_login: str | None) -> Iterator[str]:
        """What sudo is to be told, in turn: its secret; else the login's password, then what the terminal says.

        `of_login`: the password that the user was let in by, if it was one.
        """
        if host.ssh.sudo_password is not None:
            yield self._secret(host.ssh.sudo_password)
            return
        known = self._secret(host.ssh.password) if of_login is None and host.ssh.password is not None else of_login
        if known is not None:
            yield known
        if self._ask is None and known is not None:
            return
        own = ", which is not the login's" if known is not None else ""
        question = f"Password for sudo{own}, of {host.ssh.user} on {host.name} ({host.address}): "
        yield from self._asked("sudo_password", question, TRIES - (known is not None))

    def _secret(self, name: str) -> str:
        try:
            return self._fleet.secret(name)
        except FleetError as error:
            problem = error.problems[0]
            raise RefusedError(problem.what, problem.todo) from None

    def _asked(self, key: str, question: str, tries: int) -> Iterator[str]:
        if self._ask is None:
            raise RefusedError(
                "a password is wanted, and there is no terminal to ask at",
                f"run this at one, or name a secret of the fleet file: ssh: {{{key}: …}}",
            )
        before = self._before.get(key)
        said = (
            self._typed(question if before is None else f"{question}[Enter: as for the host before] ") or before or ""
        )
        for _ in range(tries - 1):
            self._before[key] = said
            yield said
            said = self._typed(f"Not taken. {question}")
        self._before[key] = said
        yield said

    def _typed(self, question: str) -> str:
        assert self._ask is not None
        try:
            return self._ask(question)
        except EOFError:
            raise RefusedError("no password was given", "run this again, and type it") from None
