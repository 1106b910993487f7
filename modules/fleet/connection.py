"""How pyinfra's SSH connector is told to reach a host: by its runs, and by whoever asks hosts without one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from modules.spec.fleet import ResolvedHost


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


def have_ssh_folder(hosts: Iterable[ResolvedHost]) -> None:
    """Make `~/.ssh` where a host may be met for the first time: OpenSSH makes it, paramiko fails without it."""
    if any(host.ssh.known_hosts is None for host in hosts):
        (Path.home() / ".ssh").mkdir(mode=0o700, parents=True, exist_ok=True)
