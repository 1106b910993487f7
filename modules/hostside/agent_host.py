"""The agent's units on this host: read and started as their files say, or taken away.

    agent_host.py settle|remove

Its files are placed before. systemd opens its socket, so that no question is lost while the program is exchanged.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.drain import SETTINGS
    from modules.hostside.drain_mark import LEASES, MARKS
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import note_lost_gpu
else:
    from drain import SETTINGS
    from drain_mark import LEASES, MARKS
    from gpus_kept import gpus_kept
    from ledger import note_lost_gpu

SOCKET, SERVICE = "tinderbox-agent.socket", "tinderbox-agent.service"
UNITS = Path("/etc/systemd/system")
FILES = (SETTINGS, UNITS / SOCKET, UNITS / SERVICE)


def is_there() -> bool:
    """Whether anything of it is on this host."""
    return any(path.exists() for path in FILES)


def settle() -> None:
    """Have it listen as its files say."""
    with gpus_kept(note_lost_gpu):
        _systemctl("daemon-reload")
        _systemctl("enable", "--quiet", SOCKET)
    # A socket can be opened anew only while its service is down; the next question starts that again.
    _systemctl("stop", SERVICE)
    _systemctl("restart", SOCKET)


def remove() -> None:
    """Have nothing of it here; every service takes requests, as far as anybody asks."""
    if (UNITS / SOCKET).exists():
        with gpus_kept(note_lost_gpu):
            _systemctl("disable", "--quiet", "--now", SOCKET)
        _systemctl("stop", SERVICE)
    for folder in (MARKS, LEASES):
        shutil.rmtree(folder, ignore_errors=True)
    for path in FILES:
        path.unlink(missing_ok=True)
    with gpus_kept(note_lost_gpu):
        _systemctl("daemon-reload")


def _systemctl(*words: str) -> None:
    subprocess.run(["systemctl", *words], check=True)


def main(arguments: list[str]) -> int:
    """0 when it is done."""
    if arguments not in (["settle"], ["remove"]):
        sys.stderr.write((__doc__ or "").splitlines()[2].strip() + "\n")
        return 2
    try:
        settle() if arguments == ["settle"] else remove()
    except (OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
