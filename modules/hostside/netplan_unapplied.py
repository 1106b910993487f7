"""What netplan's files say of other interfaces, and was not brought about yet. Changes nothing.

netplan is run into an empty folder, and what it makes there compared with what it made last: whoever has networkd or
NetworkManager read its files anew would bring all of that about. The controller sends this text to `python3 -c`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

_SAID = ("etc/netplan", "run/netplan", "lib/netplan")
_MADE = {
    "run/systemd/network": re.compile(r"^10-netplan-(.+)\.(?:network|netdev)$"),
    "run/NetworkManager/system-connections": re.compile(r"^netplan-(.+)\.nmconnection$"),
}


def made(root: Path) -> dict[str, tuple[str, bytes]]:
    """Path → interface and content of what netplan has made below `root`."""
    found = {}
    for folder, form in _MADE.items():
        for path in sorted((root / folder).glob("*")):
            name = form.match(path.name)
            if name is not None:
                found[f"/{folder}/{path.name}"] = name[1], path.read_bytes()
    return found


def unapplied(root: Path = Path("/"), netplan: str = "netplan") -> dict[str, str]:
    """File → interface of all that would change; nothing where netplan is not there, or refuses its files.

    Their text is not told: it may hold a key.
    """
    with tempfile.TemporaryDirectory(prefix="tinderbox-netplan-") as folder:
        trial = Path(folder)
        for each in _SAID:
            if (root / each).is_dir():
                shutil.copytree(root / each, trial / each)
        try:
            done = subprocess.run(
                [netplan, "generate", "--root-dir", folder], capture_output=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return {}
        if done.returncode != 0:
            return {}
        before, after = made(root), made(trial)
    changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    return {path: {**before, **after}[path][0] for path in changed}
