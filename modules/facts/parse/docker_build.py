"""`docker build` with BuildKit and plain progress."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "docker build"
_STEP = re.compile(r"#(\d+) (.*)")
_DONE = re.compile(r"DONE (\d+(?:\.\d+)?)s")
_FAILED = re.compile(r"(?:ERROR: )?(?:failed to build: )?failed to solve(?: with frontend \S+)?: (.*)")
_EXIT = re.compile(r"exit code: (\d+)")

State = Literal["running", "done", "cached", "canceled", "failed"]


@dataclass(frozen=True)
class Step:
    """A step; `title` is None when the log starts in its middle. `last`: its last line of output."""

    number: int
    title: str | None
    state: State = "running"
    seconds: float | None = None
    last: str | None = None


@dataclass(frozen=True)
class Failure:
    """`canceled`: the build was stopped from outside, which is no fault of the recipe. `exit_code`: the command's."""

    message: str
    canceled: bool
    step: int | None
    exit_code: int | None


@dataclass(frozen=True)
class DockerBuild:
    """`image`: its id. `names`: what it was tagged as."""

    steps: tuple[Step, ...]
    image: str | None
    names: tuple[str, ...]
    failure: Failure | None

    @property
    def finished(self) -> bool:
        """Whether an image was exported and named."""
        return self.image is not None and bool(self.names) and self.failure is None


@dataclass
class _Log:
    steps: dict[int, Step] = field(default_factory=dict)
    image: str | None = None
    names: list[str] = field(default_factory=list)
    failure: str | None = None


def parse_docker_build(text: str) -> DockerBuild:
    """A whole log or its tail; neither finished nor failed means that it goes on, or that its end was lost."""
    log = _Log()
    for line in lines_of(text):
        if step := _STEP.fullmatch(line.rstrip()):
            _note(log, int(step[1]), step[2])
        elif failed := _FAILED.match(line.strip()):
            log.failure = failed[1]
    if not log.steps and log.failure is None:
        raise ParseError(_PROGRAM, "not the plain progress of BuildKit", text=text)
    return DockerBuild(tuple(log.steps.values()), log.image, tuple(log.names), _failure(log))


def _note(log: _Log, number: int, rest: str) -> None:
    step = log.steps.get(number)
    if step is None:
        # A log that is cut at its head shows a step's output before, or in place of, its title.
        log.steps[number] = step = Step(number, None if _is_output(rest) else rest)
    if done := _DONE.fullmatch(rest):
        step = replace(step, state="done", seconds=float(done[1]))
    elif rest == "CACHED":
        step = replace(step, state="cached")
    elif rest == "CANCELED":
        step = replace(step, state="canceled")
    elif rest.startswith("ERROR: "):
        step = replace(step, state="failed", last=rest.removeprefix("ERROR: "))
    elif written := re.fullmatch(r"writing image (sha256:[0-9a-f]{64})(?: .*)?", rest):
        log.image = written[1]
    elif exported := re.fullmatch(r"exporting (?:manifest|config) (sha256:[0-9a-f]{64}).* done", rest):
        log.image = exported[1]
    elif named := re.fullmatch(r"naming to (\S+)(?: .*)?", rest):
        log.names += [] if named[1] in log.names else [named[1]]
    elif _is_output(rest):
        step = replace(step, last=rest.split(" ", 1)[1].strip() if " " in rest else step.last)
    log.steps[number] = step


def _is_output(rest: str) -> bool:
    return re.match(r"\d+\.\d+( |$)", rest) is not None or re.match(r"(DONE|CACHED|CANCELED|ERROR)\b", rest) is not None


def _failure(log: _Log) -> Failure | None:
    broken = next((step for step in log.steps.values() if step.state in {"failed", "canceled"}), None)
    if log.failure is None and (broken is None or broken.state == "canceled"):
        return None if broken is None else Failure("canceled", True, broken.number, None)
    message = log.failure or (broken.last if broken is not None else None) or "failed"
    code = _EXIT.search(message)
    return Failure(
        message=message,
        canceled="context canceled" in message.lower() or message.startswith("Canceled"),
        step=None if broken is None else broken.number,
        exit_code=None if code is None else int(code[1]),
    )
