"""Tell pyinfra of a fleet: its hosts, its groups, how to reach them, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from modules.fleet import Fleet, FleetError, load_fleet
from modules.fleet.needs import needs_secrets
from modules.spec.fleet import ResolvedHost

Groups = dict[str, list[str] | list[tuple[str, dict[str, Any]]]]


def pyinfra_groups() -> Groups:
    """Give the groups of the process's fleet, or end the process with what is wrong with its file."""
    try:
        fleet = load_fleet()
        if needs_secrets(sys.argv[1:]):
            fleet.fetch_needed()
    except FleetError as error:
        # Anything but SystemExit would come out of pyinfra as a traceback.
        sys.exit(f"{error}\n\n{len(error.problems)} problem(s) in the fleet file: no host was contacted.")
    if any(host.ssh.known_hosts is None for host in fleet.hosts.values()):
        # Where the keys of hosts that are met for the first time go; OpenSSH makes it, paramiko fails without it.
        (Path.home() / ".ssh").mkdir(mode=0o700, parents=True, exist_ok=True)
    return groups_of(fleet)


def groups_of(fleet: Fleet) -> Groups:
    """Give each group's hosts under its own name, and under `all` every host with its connection."""
    groups: Groups = {"all": [(host.name, connection(host)) for host in fleet.hosts.values()]}
    members: dict[str, list[str]] = {}
    for host in fleet.hosts.values():
        for group in host.groups:
            members.setdefault(group, []).append(host.name)
    return groups | members


def connection(host: ResolvedHost) -> dict[str, Any]:
    """Give pyinfra's SSH data for a host. A known_hosts file means that no other host key is taken."""
    ssh = host.ssh
    data: dict[str, Any] = {
        "ssh_hostname": host.address,
        "ssh_port": ssh.port,
        "ssh_user": ssh.user,
        "ssh_key": ssh.key,
        "ssh_known_hosts_file": ssh.known_hosts,
        "ssh_strict_host_key_checking": "yes" if ssh.known_hosts else "accept-new",
        "ssh_config_file": ssh.config,
    }
    return {key: value for key, value in data.items() if value is not None}
