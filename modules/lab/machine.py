"""The machine that the lab runs on: its programs, and the Debian packages that bring missing ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from modules.lab.errors import LabError

_LAST_LINES = 15
_apt_lock = threading.Lock()


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 1800.0,
) -> str:
    """Run a program to its end and return its standard output.

    Raises:
        LabError: it failed, with its last lines, or it took longer than `timeout_s` seconds.

    """
    argv = [str(part) for part in command]
    try:
        done = subprocess.run(
            argv, cwd=cwd, env={**os.environ, **(environment or {})}, timeout=timeout_s,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is not installed on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{argv[0]} did not end within {timeout_s:.0f} s") from error
    if done.returncode != 0:
        last = "\n".join(f"    {line}" for line in (done.stderr or done.stdout).splitlines()[-_LAST_LINES:])
        raise LabError(f"{' '.join(argv[:4])} ... ended with status {done.returncode}:\n{last}")
    return done.stdout


def need(programs: Mapping[str, str]) -> None:
    """Make sure that programs are there: name of the program → Debian package that brings it.

    Raises:
        LabError: one is missing and can not be installed, because we are not root or have no apt.

    """
    with _apt_lock:
        missing = sorted({package for program, package in programs.items() if not has(program)})
        if not missing:
            return
        if not can_install():
            packages = " ".join(missing)
            raise LabError(f"the lab needs {packages}: run `sudo apt-get install --yes {packages}`")
        environment = {"DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "update"], environment=environment)
        # Another apt may be at work on a machine that has just come up.
        install = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "--yes", "--no-install-recommends"]
        run([*install, *missing], environment=environment)


def has(program: str) -> bool:
    """Whether a program is on the PATH, or among those of root."""
    return shutil.which(program) is not None or shutil.which(program, path="/usr/sbin:/sbin") is not None


def can_install() -> bool:
    """Whether we are root on a machine with apt."""
    return os.geteuid() == 0 and has("apt-get")
