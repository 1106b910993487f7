"""Answer many questions at once: standard input is a JSON list of them, standard output one of answers, in order.

The controller sends this file's text along, so that it also runs before anything of ours is on the host. A question is
`{"shell": command}`, or `{"program": path, "words": [...], "absent": text}` for a program of ours, which runs in a
child of this process: a host has no Python to start for it, and nothing to import that was imported here. An answer is
`{"status": exit status, "out": [lines], "err": [lines]}`. As many run side by side as the host has processors, eight at
most. Every question is only asked, so none of them sees what another one does.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import IO, Any, NamedTuple

_MOST = 8
# What the programs import. Those of ours lie beside each other.
_COMMON = ("argparse", "contextlib", "dataclasses", "datetime", "hashlib", "re", "shutil", "urllib.request")
# These look at the versions of the machine's parts; one look serves all.
_OF_VERSIONS = ("service_state.py", "gate_state.py")
_OURS = ("docker_cli", "ledger", "inspection", "versions", "json_form", "weights_stamp")


class Asked(NamedTuple):
    """A question that is being answered. `process`: None for a child that was forked."""

    pid: int
    process: subprocess.Popen[bytes] | None
    out: IO[bytes]
    err: IO[bytes]


def ask(question: dict[str, Any]) -> Asked:
    """Begin to answer."""
    # Closed by `answer`.
    out, err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
    if "shell" in question:
        process = subprocess.Popen(["sh", "-c", question["shell"]], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        return Asked(process.pid, process, out, err)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), out.fileno(), err.fileno())):
                os.dup2(source, target)
            status = run(question["program"], question["words"], question["absent"])
        finally:
            # Whatever a program has registered for its end, or holds open, is its own and ends with it.
            os._exit(status)
    return Asked(pid, None, out, err)


def run(program: str, words: list[str], absent: str) -> int:
    """Run a program here as Python would have run it; gives its exit status."""
    if not Path(program).exists():
        print(absent, end="\n" if absent else "", flush=True)
        return 0
    sys.argv = [program, *words]
    status: object = 0
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        status = end.code
    except BaseException:  # as Python tells of any other end, too
        traceback.print_exc()
        status = 1
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return int(status or 0)


def answer(asked: Asked, status: int) -> dict[str, Any]:
    """What came of it."""
    lines = []
    for file in (asked.out, asked.err):
        file.seek(0)
        lines.append(file.read().decode(errors="replace").split("\n"))
        file.close()
        if not lines[-1][-1]:
            lines[-1].pop()
    return {"status": status, "out": lines[0], "err": lines[1]}


def prepare(questions: list[dict[str, Any]]) -> None:
    """Import once what the programs will import."""
    folders = {os.path.dirname(one["program"]) for one in questions if "program" in one}  # noqa: PTH120
    sys.path[:0] = sorted(folder for folder in folders if os.path.isdir(folder))  # noqa: PTH112
    for name in (*_COMMON, *_OURS) if folders else ():
        try:
            __import__(name)
        except Exception:  # noqa: S112 - the program that needs it will say so itself
            continue
    if sum(one.get("program", "").endswith(_OF_VERSIONS) for one in questions) > 1:
        with contextlib.suppress(Exception):
            sys.modules["versions"].remember()


def survey(questions: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Answer all of them, `most` at a time."""
    answers: list[dict[str, Any]] = [{}] * len(questions)
    running: dict[int, tuple[int, Asked]] = {}
    waiting = list(enumerate(questions))
    while waiting or running:
        while waiting and len(running) < most:
            number, question = waiting.pop(0)
            asked = ask(question)
            running[asked.pid] = (number, asked)
        pid, ended = os.wait()
        if pid not in running:
            continue
        number, asked = running.pop(pid)
        status = os.waitstatus_to_exitcode(ended)
        if asked.process is not None:
            asked.process.returncode = status  # it was waited for here
        answers[number] = answer(asked, status)
    return answers


def main() -> int:
    """Read, ask, tell."""
    questions = json.loads(sys.stdin.readline())
    prepare(questions)
    print(json.dumps(survey(questions, min(_MOST, os.cpu_count() or 1))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
