"""Build the Python environment that Tinderbox's own programs need on a host, from a lock with hashes.

Environments are named by their lock: a new one is built beside the old one, which stays in use until it is whole.
On the controller, which measures from there, it is built with that one's own Python (`--python`), in `--tools`.
Exit status: 0 it is in use; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.progress import Progress
    from modules.hostside.wrong_clock import blames_clock, remedy
else:
    from progress import Progress
    from wrong_clock import blames_clock, remedy

TOOLS = Path("/var/lib/tinderbox/tools")
LOCK = Path(__file__).with_name("tools.lock")
_PYTHON = "/usr/bin/python3"
_COLLECTING = re.compile(r"^Collecting (\S+)")
_PACKAGE = re.compile(r"^[a-z0-9][a-z0-9._-]*==", re.MULTILINE)


def identity(lock: str) -> str:
    """What an environment is called."""
    return hashlib.sha256(lock.encode()).hexdigest()[:12]


def run(command: list[str]) -> None:
    """Run a program to its end. Raises `SystemExit` when it fails; its words are in the log."""
    if subprocess.run(command, check=False).returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}")


def follow(lines: Iterable[str], packages: int, progress: Progress) -> bool:
    """Pass on what pip says, and count; gives whether it said that the clock is wrong."""
    collected, wrong_clock = 0, False
    for line in lines:
        print(line, end="", flush=True)
        wrong_clock = wrong_clock or blames_clock(line)
        if found := _COLLECTING.match(line):
            collected += 1
            progress.report(f"fetching {found[1]}", collected, packages, "packages")
        elif line.startswith("Installing collected packages"):
            progress.report("installing")
    return wrong_clock


def build(home: Path, lock: str, progress: Progress, python: str = _PYTHON) -> None:
    """Make the environment. It is whole when this returns."""
    progress.report("making the environment")
    run([python, "-m", "venv", "--clear", str(home)])
    # Bytecode is made at first use: most of it is never used.
    words = ["install", "--require-hashes", "--no-compile", "--disable-pip-version-check", "--progress-bar", "off"]
    command = [str(home / "bin" / "python"), "-m", "pip", *words, "--requirement", str(LOCK)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        wrong_clock = follow(pip.stdout or (), len(_PACKAGE.findall(lock)), progress)
    if pip.returncode != 0:
        raise SystemExit(f"pip failed: {remedy()}" if wrong_clock else advice(os.environ))
    (home / ".whole").touch()


def advice(environment: Mapping[str, str]) -> str:
    """What to do where pip failed."""
    if "PIP_NO_INDEX" in environment:
        return (
            f"pip failed: the bundle's {environment.get('PIP_FIND_LINKS')} has not got all that the tools need, as it "
            "was exported; copy it again, or export the bundle anew from a host of this kind with this version of "
            "Tinderbox"
        )
    return "pip failed; where it can not reach its index, set `network.pip_index` and `network.ca_bundle`"


def publish(home: Path) -> None:
    """Put it in use, and drop those that are no longer."""
    tools = home.parent
    beside = tools / ".current"
    beside.unlink(missing_ok=True)
    beside.symlink_to(home.name)
    beside.replace(tools / "current")
    for other in tools.iterdir():
        if other.is_dir() and not other.is_symlink() and other != home:
            shutil.rmtree(other, ignore_errors=True)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, default=TOOLS)
    parser.add_argument("--python", default=_PYTHON)
    options = parser.parse_args()
    lock = LOCK.read_text()
    home = options.tools / identity(lock)
    options.tools.mkdir(parents=True, exist_ok=True)
    if not (home / ".whole").exists():
        # `ensurepip` is a package of its own on Debian and Ubuntu.
        asked = [options.python, "-c", "import ensurepip, venv"]
        if subprocess.run(asked, check=False, capture_output=True).returncode != 0:
            raise SystemExit("python3 has no venv module here: apt-get install python3-venv")
        build(home, lock, Progress(), options.python)
    publish(home)
    print(f"in use: {home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
