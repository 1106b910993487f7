"""What measuring from the controller needs there: the hosts' locked tools, and the tokenizers of models."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyinfra.api import Host, QuoteString, StringCommand

from modules.operations.connection import connector_arguments
from modules.operations.reach import ask
from modules.operations.tools import lock_identity
from modules.reporting.measured import ROOT

# No fleet's name begins with a dot.
TOOLS, TOKENIZERS = ".tools", ".tokenizers"
_HOSTSIDE = Path(__file__).parents[1] / "hostside"
_TIMEOUT_S = 3600
# Weights have other endings.
_ENDINGS = ("*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken")


class ControllerError(Exception):
    """Something is missing on the controller."""


def tools_are_here(root: Path = ROOT) -> bool:
    """Whether those of this very lock are in use."""
    wanted = lock_identity((_HOSTSIDE / "tools.lock").read_bytes())
    return (root / TOOLS / "current").exists() and (root / TOOLS / "current").readlink().name == wanted


def tools_here(root: Path = ROOT) -> Path:
    """`bin` of an environment with the locked tools, made where there is none. Raises `ControllerError`."""
    words = ["--tools", str(root / TOOLS), "--python", sys.executable]
    done = subprocess.run(
        [sys.executable, str(_HOSTSIDE / "install_tools.py"), *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-8:])
        raise ControllerError(
            f"the tools to measure with could not be installed on the controller, by its own settings of pip:\n{last}"
        )
    return root / TOOLS / "current" / "bin"


def tokenizer_here(host: Host, snapshot: str, pause: Callable[[float], bool], root: Path = ROOT) -> Path:
    """A model's tokenizer, fetched from its snapshot on the host once for each commit. Raises `ControllerError`."""
    # …/models--ORGANIZATION--NAME/snapshots/COMMIT
    *_, model, _, commit = Path(snapshot).parts
    there = root / TOKENIZERS / model / commit
    if there.exists():
        return there
    patterns = " -o ".join(f"-name '{ending}'" for ending in _ENDINGS)
    look = StringCommand("find -L", QuoteString(snapshot), f"-maxdepth 1 -type f \\( {patterns} \\) -printf '%f\\n'")
    found, output = ask(host, look, pause)
    names = [line.strip() for line in output.stdout_lines if line.strip()]
    if not found or not names:
        raise ControllerError(f"{snapshot} on the host holds no tokenizer")
    there.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=there.parent))
    try:
        for name in names:
            if not host.get_file(f"{snapshot}/{name}", str(beside / Path(name).name), **connector_arguments(host)):
                raise ControllerError(f"{snapshot}/{name} could not be fetched from the host")
        beside.rename(there)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return there
