"""Prometheus' configuration on this host: checked by promtool where it lies, then put in force by one rename.

/etc/tinderbox/prometheus              → the directory in force
/etc/tinderbox/prometheus-<any>/       its files
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import write_text
    from modules.hostside.configuration_digest import digest_of
else:
    from atomic import write_text
    from configuration_digest import digest_of

SETTINGS = Path("/etc/tinderbox")
_MAIN = "prometheus.yml"


class CheckError(Exception):
    """promtool refuses the configuration; what was in force still is."""


def link(settings: Path = SETTINGS) -> Path:
    """What Prometheus is told to read."""
    return settings / "prometheus"


def in_force(settings: Path = SETTINGS) -> str | None:
    """Digest of what Prometheus is told to read, as it lies there now; None where there is nothing of ours."""
    if not link(settings).is_symlink():
        return None
    try:
        return digest_of({path.name: path.read_text(encoding="utf-8") for path in link(settings).iterdir()})
    except (OSError, ValueError):
        return "unreadable"


def publish(files: Mapping[str, str], settings: Path = SETTINGS, promtool: str = "promtool") -> None:
    """Have these files in force. Raises `CheckError`: promtool found fault with them."""
    settings.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix="prometheus-", dir=settings))
    try:
        fresh.chmod(0o755)
        for name, text in files.items():
            write_text(fresh / name, text)
        _checked(fresh, promtool)
        beside = settings / ".prometheus.new"
        beside.unlink(missing_ok=True)
        beside.symlink_to(fresh.name)
        beside.replace(link(settings))
    finally:
        _clear(settings)


def withdraw(settings: Path = SETTINGS) -> None:
    """No configuration of ours is left."""
    for path in (link(settings), settings / ".prometheus.new"):
        path.unlink(missing_ok=True)
    _clear(settings)


def _clear(settings: Path) -> None:
    """Take away what is not in force: what was before, and what a run that was cut has half made."""
    kept = link(settings).readlink().name if link(settings).is_symlink() else None
    for path in settings.glob("prometheus-*"):
        if path.is_dir() and path.name != kept:
            shutil.rmtree(path, ignore_errors=True)


def _checked(folder: Path, promtool: str) -> None:
    try:
        done = subprocess.run(
            [promtool, "check", "config", str(folder / _MAIN)],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CheckError(f"promtool could not check Prometheus' configuration: {error}") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()
        raise CheckError(f"promtool refuses Prometheus' configuration, and the former one stays in force:\n{said}")
