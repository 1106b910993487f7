"""Judgement of sudo, which every stage needs."""

from __future__ import annotations

from pyinfra.api import Host

from modules.facts.sudo import Sudo
from roles.preflight.finding import Finding, found
from roles.preflight.report import report, stop_host


def sudo_finding(user: str) -> Finding:
    """That sudo asks `user` for a password."""
    command = f"echo '{user} ALL=(ALL) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/{user}"
    return found(
        "sudo-password",
        "sudo",
        f"user {user} can not use sudo without a password",
        "sudo that asks nothing",
        f"make bootstrap, which asks for the password once; or as an administrator of the host: `{command}`",
        commands=(command,),
    )


def stop_where_sudo_asks(host: Host) -> None:
    """Stop this host, and no other, when sudo asks for a password.

    pyinfra would ask the operator for it, and where there is no terminal end the run of every host in a traceback.
    """
    state = host.get_fact(Sudo, _sudo=False)
    if state is None or state.free:
        return
    findings = [sudo_finding(state.user)]
    report(host, findings)
    stop_host(host, findings)
