"""Where runs of all users of this machine meet."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

_SHARED = Path("/run/lock")


def shared_folder() -> Path:
    """/run/lock where every user may write there (Debian, Ubuntu), else the machine's folder for temporary files."""
    try:
        everybody = _SHARED.stat().st_mode & stat.S_IWOTH
    except OSError:
        everybody = 0
    return _SHARED if everybody else Path(tempfile.gettempdir())
