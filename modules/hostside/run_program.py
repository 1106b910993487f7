"""A program of the host, run to its end."""

from __future__ import annotations

import subprocess


def run(*command: str, timeout_s: float = 360) -> tuple[int, str]:
    """Exit status and all that it said; 127 where it is not there, 126 where it did not end in time."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout_s, check=False
        )
    except FileNotFoundError:
        return 127, f"{command[0]} is not installed"
    except (OSError, subprocess.TimeoutExpired) as error:
        return 126, str(error)
    return done.returncode, done.stdout.strip()
