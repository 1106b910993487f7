"""A program at a terminal of its own, with somebody who answers its questions."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Mapping, Sequence

from modules.lab.layout import ROOT
from tests.lab.lab_driver import Run

Answers = Sequence[tuple[str, str]]
"""What is asked (a part of it) → what is typed then, each once and in this order."""


def at_terminal(
    argv: Sequence[str], answers: Answers = (), *, environment: Mapping[str, str], timeout_s: float = 300
) -> Run:
    """Run a program to its end. What it wrote, and what was echoed, is in `stdout`. A question too many ends it."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execvpe(argv[0], list(argv), {**os.environ, "COLUMNS": "500", **environment})
    said, waiting, seen, until = "", list(answers), 0, time.monotonic() + timeout_s
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            more = os.read(terminal, 1 << 15)
        except OSError:  # so a terminal ends whose other side is closed
            break
        if not more:
            break
        said += more.decode(errors="replace")
        if waiting and waiting[0][0] in said[seen:]:
            seen = len(said)
            os.write(terminal, f"{waiting.pop(0)[1]}\n".encode())
    else:
        os.kill(child, 9)
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert not waiting, f"was never asked: {[asked for asked, _ in waiting]}\n{said}"
    return Run(status, said.replace("\r\n", "\n"), "")
