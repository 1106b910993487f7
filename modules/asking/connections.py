"""Connections to the hosts of a fleet, by pyinfra's own connector: what a run reaches is reached, and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from paramiko import Channel, SSHClient, SSHException
from pyinfra.api import Config, Host, Inventory, State
from pyinfra.api.exceptions import ConnectError, PyinfraError
from pyinfra.connectors.sshuserclient.client import get_host_keys, get_ssh_config

from modules.fleet import Fleet
from modules.fleet.connection import connection, have_ssh_folder
from modules.operations.connection import keep_alive
from modules.reporting.connection_advice import advice, login
from modules.spec.fleet import ResolvedHost

# A host that talks is given more time: its CPU may be busy.
_LOGIN_S = 8.0
_KNOWN_HOSTS = "~/.ssh/known_hosts"
BROKEN = (OSError, SSHException, EOFError, AttributeError)


class UnreachedError(Exception):
    """A host was not reached, or gave no answer: why, and what to do."""


class Connections:
    """To the hosts of one fleet. `patience_s`: until a host that says nothing counts as silent."""

    def __init__(self, fleet: Fleet, hosts: Iterable[ResolvedHost], patience_s: float) -> None:
        self._fleet, self.hosts, self.patience_s = fleet, {host.name: host for host in hosts}, patience_s
        have_ssh_folder(self.hosts.values())
        # Where nobody takes their records, Python prints them: tracebacks of what is told here in a line.
        for name in ("paramiko", "pyinfra"):
            if not logging.getLogger(name).handlers:
                logging.getLogger(name).addHandler(logging.NullHandler())
        # Beyond the patience, so that it is told in one way what was waited for.
        longest = patience_s + 1
        told = {"banner_timeout": longest, "auth_timeout": _LOGIN_S, "channel_timeout": _LOGIN_S}
        data = [
            (host.name, connection(host) | {"ssh_paramiko_connect_kwargs": told, "ssh_connect_retries": 0})
            for host in self.hosts.values()
        ]
        for known in {host.ssh.known_hosts or _KNOWN_HOSTS for host in self.hosts.values()}:
            # By one thread, since all others will ask for them at once.
            get_host_keys((str(Path(known).expanduser()),))
        state = State(Inventory((data, {})), Config(CONNECT_TIMEOUT=longest))
        self._reached = {name: state.inventory.get_host(name) for name in self.hosts}

    def channel(self, name: str) -> Channel:
        """A channel for one command; the connection is made where there is none yet, or none any more.

        Raises `UnreachedError`: with why, and what to do.
        """
        host = self._reached[name]
        try:
            if not self.lasts(name):
                self.close(name)
                host.connect(show_errors=False, raise_exceptions=True)
                keep_alive(host)
            return self._client(name).get_transport().open_session(timeout=_LOGIN_S)  # type: ignore[union-attr]
        except ConnectError as error:
            raise UnreachedError(self.told(name, str(error.args[0]))) from None
        except PyinfraError as error:  # of the key
            key = f"give it to your SSH agent (ssh-add) and leave ssh.key out of hosts.{name}"
            raise UnreachedError(f"{error}: {key}") from None
        except BROKEN as error:
            raise UnreachedError(self.told(name, f"SSH error ({type(error).__name__}: {error})")) from None

    def told(self, name: str, said: str) -> str:
        """An error of the connection with what to do about it."""
        todo = advice(said, self.hosts[name], self._fleet.path)
        return f"{said}: {todo}" if todo else said

    def login(self, name: str) -> str:
        """The command by which an operator looks for themselves."""
        return login(self.hosts[name])

    def heard(self, name: str) -> bool:
        """Whether its sshd has said anything yet."""
        transport = getattr(self._client(name), "_transport", None)
        return bool(transport is not None and transport.remote_version)

    def silence(self, name: str) -> str:
        """Why a host that was not heard of counts as not reached."""
        transport = getattr(self._client(name), "_transport", None)
        within = f"within {self.patience(name):g} s"
        if transport is None:
            return self.told(name, f"Could not connect (no answer {within})")
        return self.told(name, f"Could not connect (it takes connections, and says nothing {within})")

    def patience(self, name: str) -> float:
        """Of a host behind others longer: each of them is logged in to on the way."""
        ssh = self.hosts[name].ssh
        config = get_ssh_config(ssh.config)
        found: dict[str, Any] = config.lookup(self.hosts[name].address) if config else {}
        hops = len(found["proxyjump"].split(",")) if "proxyjump" in found else int("proxycommand" in found)
        return self.patience_s * (1 + hops)

    def lasts(self, name: str) -> bool:
        """Whether there is a connection, as far as one can see from here."""
        client = self._client(name)
        transport = client.get_transport() if client is not None else None
        return transport is not None and transport.is_active() and transport.is_authenticated()

    def close(self, name: str) -> None:
        """End a connection; the host ends there what it has begun for us."""
        client, host = self._client(name), self._reached[name]
        host.connected = False
        if client is not None:
            client.close()

    def close_all(self) -> None:
        """End them all."""
        for name in self.hosts:
            self.close(name)

    def _client(self, name: str) -> SSHClient | None:
        host: Host = self._reached[name]
        client: SSHClient | None = getattr(host.connector, "client", None)
        return client
