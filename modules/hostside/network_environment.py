"""The site's network settings (proxy, certificate authorities, mirrors) as this host has them.

systemd units and jobs get them by `EnvironmentFile=`; a program that is run by hand or over SSH loads them here.
"""

from __future__ import annotations

import os
from pathlib import Path

PATH = Path("/etc/tinderbox/network.env")


def load(path: Path = PATH) -> None:
    """Add the settings to this process's environment; a variable that is set already stays as it is."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        name, separator, value = line.partition("=")
        if separator and not name.startswith("#"):
            os.environ.setdefault(name.strip(), value.strip().strip('"'))
