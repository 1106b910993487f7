"""Tell pyinfra of a fleet: its hosts, its groups, how to reach them, and nothing else."""

from __future__ import annotations

import sys
from typing import Any

from modules.fleet import Fleet, FleetError, load_fleet
from modules.fleet.connection import connection, have_ssh_folder
from modules.fleet.needs import needs_secrets

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
    have_ssh_folder(fleet.hosts.values())
    return groups_of(fleet)


def groups_of(fleet: Fleet) -> Groups:
    """Give each group's hosts under its own name, and under `all` every host with its connection."""
    groups: Groups = {"all": [(host.name, connection(host)) for host in fleet.hosts.values()]}
    members: dict[str, list[str]] = {}
    for host in fleet.hosts.values():
        for group in host.groups:
            members.setdefault(group, []).append(host.name)
    return groups | members
