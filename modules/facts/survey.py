"""Many questions to a host in one round trip."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from pyinfra.api import Host, QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.facts.program import AskProgram

T = TypeVar("T")
# Short, since sudo writes down what stands in a command.
LOADER = "import json, sys; exec(json.loads(sys.stdin.readline()))"
_PROGRAM = Path(__file__).parents[1] / "hostside" / "survey.py"


@dataclass(frozen=True)
class Question(Generic[T]):
    """A fact with its arguments: what an operation will ask, said before it does."""

    fact: type[HostFact[T]]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def command(self) -> StringCommand:
        """What the host is asked."""
        command: StringCommand = self.fact().command(**self.arguments)  # type: ignore[assignment]
        return command

    def of(self, host: Host) -> T | None:
        """What a host says to it; None: see `HostFact`."""
        return host.get_fact(self.fact, **self.arguments)


@dataclass(frozen=True)
class Answer:
    """What a command printed, and whether it succeeded."""

    succeeded: bool
    out: tuple[str, ...]
    err: tuple[str, ...]


def survey_command() -> StringCommand:
    """What runs the program that comes with `survey_request`, by standard input; it needs nothing of ours there."""
    return StringCommand("python3 -c", QuoteString(LOADER))


def survey_request(commands: Iterable[StringCommand]) -> str:
    """The program and the questions, each in one line of JSON."""
    return f"{json.dumps(_source())}\n{json.dumps([_asked(command) for command in commands])}\n"


def survey_answers(lines: Iterable[str], count: int) -> list[Answer]:
    """The answers in the order of the questions. Raises ValueError where the program has not answered all of them."""
    document = next((line for line in lines if line.startswith("[")), "[]")  # a login banner may come first
    answers = [Answer(each["status"] == 0, tuple(each["out"]), tuple(each["err"])) for each in json.loads(document)]
    if len(answers) != count:
        raise ValueError(f"{len(answers)} answers to {count} questions")
    return answers


def _asked(command: StringCommand) -> dict[str, object]:
    if isinstance(command, AskProgram):
        return {"program": command.program, "words": command.words, "absent": command.absent}
    return {"shell": command.get_raw_value()}


@cache
def _source() -> str:
    return _PROGRAM.read_text(encoding="utf-8")
