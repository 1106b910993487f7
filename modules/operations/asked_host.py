"""A question to a host in a run of pyinfra, with the program that answers it, as `modules.asking` asks without one."""

from __future__ import annotations

from paramiko import SSHException
from pyinfra.api import Host, StringCommand

from modules.asking.program import command
from modules.asking.side_by_side import Answer, Silent


def ask_host(host: Host, request: str, timeout_s: float) -> Answer | Silent:
    """What it printed. It is asked as whoever logs in, who becomes root by what is asked."""
    try:
        succeeded, output = host.run_shell_command(
            StringCommand(command()), _sudo=False, _stdin=request, _timeout=round(timeout_s)
        )
    # paramiko's channels also end in EOFError and, once their transport is gone, in AttributeError.
    except (OSError, SSHException, EOFError, AttributeError) as error:
        return Silent(f"the connection broke ({type(error).__name__}: {error})")
    return Answer("\n".join(output.stdout_lines), "\n".join(output.stderr_lines), 0 if succeeded else 1)
