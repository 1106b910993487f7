"""Prometheus' configuration on this host: checked by promtool where it lies, then put in force by one rename.

/etc/tinderbox/prometheus              → the directory in force
/etc/tinderbox/prometheus-<digest>/    its files
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import write_text
else:
    from atomic import write_text

SETTINGS = Path("/etc/tinderbox")
_MAIN = "prometheus.yml"


class CheckError(Exception):
    """promtool refuses the configuration; what was in force still is."""


def link(settings: Path = SETTINGS) -> Path:
    """What Prometheus is told to read."""
    return settings / "prometheus"


def in_force(settings: Path = SETTINGS) -> str | None:
    """Digest of the configuration that Prometheus reads."""
    try:
        return link(settings).readlink().name.removeprefix("prometheus-")
    except OSError:
        return None


def publish(digest: str, files: Mapping[str, str], settings: Path = SETTINGS, promtool: str = "promtool") -> None:
    """Have these files in force. Raises `CheckError`: promtool found fault with them."""
    settings.mkdir(parents=True, exist_ok=True)
    _clear(settings, keep=in_force(settings))
    fresh = Path(tempfile.mkdtemp(prefix="prometheus-new-", dir=settings))
    try:
        fresh.chmod(0o755)
        for name, text in files.items():
            write_text(fresh / name, text)
        _checked(fresh, promtool)
        final = settings / f"prometheus-{digest}"
        fresh.rename(final)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    beside = settings / f".prometheus.{os.getpid()}"
    beside.unlink(missing_ok=True)
    beside.symlink_to(final.name)
    beside.replace(link(settings))
    _clear(settings, keep=digest)


def withdraw(settings: Path = SETTINGS) -> None:
    """No configuration of ours is left."""
    link(settings).unlink(missing_ok=True)
    _clear(settings, keep=None)


def _clear(settings: Path, keep: str | None) -> None:
    """Take away what is not in force, half-made ones of a run that was cut among them."""
    for path in settings.glob("prometheus-*"):
        if path.is_dir() and path.name != f"prometheus-{keep}":
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
