"""The first login, where pyinfra itself is told to run deploys/bootstrap.py: it would not be let in yet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from modules.operations.asked import OPENED

_DEPLOY = "deploys/bootstrap.py"
_ROOT = Path(__file__).parents[1]


def open_hosts() -> None:
    """Have `modules.bootstrap` open the hosts. Those that it can not are refused by pyinfra, too, and fail the run."""
    words = wanted(sys.argv)
    if words is not None and not os.environ.get(OPENED):
        # A process of its own: it asks at the terminal, which pyinfra's greenlets would stop for.
        subprocess.run([sys.executable, "-m", "modules.bootstrap", "--first-login", *words], cwd=_ROOT, check=False)


def wanted(argv: Sequence[str]) -> list[str] | None:
    """Which hosts, as options; None where pyinfra runs something else, or is to change nothing."""
    if "--dry" in argv or not any(Path(word).as_posix().endswith(_DEPLOY) for word in argv):
        return None
    limits = [argv[at + 1] for at, word in enumerate(argv[:-1]) if word == "--limit"]
    limits += [word.removeprefix("--limit=") for word in argv if word.startswith("--limit=")]
    return [part for limit in limits for part in ("--limit", limit)]
