"""A program of modules/hostside that is sent along with its question: what a host has installed does not matter."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from modules.facts.survey import LOADER

_HOSTSIDE = Path(__file__).parents[1] / "hostside"
# Makes modules of the texts, in order, and runs the last one. Its own `input` is what stands below in standard input.
_UNPACK = """\
import sys, types
texts = json.loads(sys.stdin.readline())
for at, (name, text) in enumerate(texts):
    last = at + 1 == len(texts)
    module = types.ModuleType("__main__" if last else name)
    sys.modules[module.__name__ if last else name] = module
    exec(compile(text, f"tinderbox/{name}.py", "exec"), module.__dict__)
"""


@cache
def request(*modules: str) -> str:
    """Two lines that a host is sent: the texts of these modules, each after those that it imports, and how to run them.

    What the last one reads from standard input follows.
    """
    texts = [(name, (_HOSTSIDE / f"{name}.py").read_text(encoding="utf-8")) for name in modules]
    return f"{json.dumps(_UNPACK)}\n{json.dumps(texts)}\n"


def command(words: Sequence[str] = ()) -> str:
    """What runs it, in the shell of whoever logs in: as root where sudo lets, else as who they are.

    Where sudo asks for a password it reads nothing of the request, so there is no second round trip.
    """
    run = shlex.join(["python3", "-ISc", LOADER, *words])
    # By its path, since sudo would find an owner's own in /usr/local/bin, which docs/begin.md does not list.
    return shlex.join(["sh", "-c", f"sudo -n /usr/bin/{run} || exec {run}"])
