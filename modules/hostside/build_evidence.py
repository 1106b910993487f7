"""What of a failed build's output matters: the step that failed, what it said last, and why it ended."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.build_steps import END, STEP, spoken
else:
    from build_steps import END, STEP, spoken

_KEPT = 60
_LONGEST = 400
_SAID = re.compile(r"^#(\d+) (?:\d+\.\d+ )?(.*)$")
# `executor failed running [/bin/sh -c …]: exit code: 137`, `process "/bin/sh -c …" did not complete successfully: …`:
# the command stands in the step already.
_COMMAND = re.compile(r"(?:executor failed running \[.*\]|process \".*\" did not complete successfully): ")
_NO_USE = re.compile(r"^(?:sha256:|extracting|resolve |\.\.\.|DONE|CACHED|$)")
_OOM = ("Out of memory: Killed process", "oom-kill:constraint", "Memory cgroup out of memory: Killed")
# Since Linux 4.13, whatever the kill's limit was: the host's memory or that of a control group.
_VMSTAT = Path("/proc/vmstat")


@dataclass
class BuildEvidence:
    """Hears the output of a build, and keeps the last lines of each step and of what belongs to none."""

    _steps: dict[str, str] = field(default_factory=dict)
    _said: dict[str, deque[str]] = field(default_factory=dict)
    _besides: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _failed: list[str] = field(default_factory=list)
    _ends: dict[str, str] = field(default_factory=dict)

    def hear(self, line: str) -> None:
        """Take in a line of BuildKit's plain output."""
        line = line.rstrip()
        if found := STEP.match(line):
            self._steps[found[1]] = spoken(found[2], found[5])
        elif (found := END.match(line)) and found[2] == "ERROR":
            self._failed.append(found[1])
            self._ends[found[1]] = _COMMAND.sub("", line.partition("ERROR: ")[2])
        elif found := _SAID.match(line):
            if not _NO_USE.match(found[2]):
                self._said.setdefault(found[1], deque(maxlen=_KEPT)).append(found[2][:_LONGEST])
        elif line and not line.startswith(("---", " > ", "#")):
            self._besides.append(_COMMAND.sub("", line)[:_LONGEST])

    def step(self) -> str | None:
        """The step that failed first, in a few words."""
        return next((self._steps[number] for number in self._failed if number in self._steps), None)

    def lines(self) -> list[str]:
        """What it said last and why it ended; where no step failed, what docker itself said."""
        number = next((number for number in self._failed if number in self._steps), None)
        number = number or next(iter(self._failed), None)
        if number is None:
            return list(self._besides)
        said = list(self._said.get(number, ()))
        # Docker's own last words repeat the step's, but tell what the daemon knows besides.
        return list(dict.fromkeys([*said, self._ends[number], *self._besides]))


def oom_kills() -> int:
    """How many processes the kernel has killed for memory since it was started; 0 where it does not count them."""
    try:
        lines = _VMSTAT.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def kernel_lines(since: float, kills: int) -> list[str]:
    """What the kernel tells of processes that it killed for memory since then.

    `since`: seconds since 1970. `kills`: what `oom_kills` was then, for a kernel whose log says nothing.
    """
    asked = ["journalctl", "--dmesg", "--no-pager", "--output=short-iso", f"--since=@{int(since)}"]
    try:
        shown = subprocess.run(asked, capture_output=True, text=True, errors="replace", check=False).stdout
    except OSError:
        shown = ""
    named = [line for line in shown.splitlines() if any(words in line for words in _OOM)][-10:]
    more = oom_kills() - kills
    return named or ([f"oom_kill in {_VMSTAT} rose by {more} during the build"] if more > 0 else [])
