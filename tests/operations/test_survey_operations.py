"""Facts are asked together and handed out one by one; what is done on a host takes them back."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import StringCommand
from pyinfra.api.exceptions import ConnectError
from pyinfra.connectors.util import CommandOutput, OutputLine
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.survey import Question, survey_command
from modules.operations.survey import Survey

SURVEY = survey_command().get_raw_value()
SUDO: dict[str, Any] = {"_sudo": True, "_stdin": None, "_env": {}, "_success_exit_codes": [0], "_retry_delay": 5}


class Told(HostFact[str]):
    """What `name` is told."""

    @override
    def command(self, word: str) -> StringCommand:
        return StringCommand("tell", word)

    @override
    def parse(self, lines: list[str]) -> str:
        return lines[0]


class Plain(Told):
    """As facts of pyinfra's own."""

    command = "tell plain"  # type: ignore[assignment]


class OneHost:
    """A host that answers, and counts how often it was gone to. `broken`: the program does not run there."""

    def __init__(self, *, broken: bool = False) -> None:
        self.name, self.broken = "spark-1", broken
        self.state = SimpleNamespace(current_stage=3)
        self.current_op_hash: str | None = "first"
        self.trips: list[list[str]] = []

    def run_shell_command(self, command: StringCommand | str, **arguments: Any) -> tuple[bool, CommandOutput]:
        text = command if isinstance(command, str) else command.get_raw_value()
        if text == SURVEY:
            asked = [each["shell"] for each in json.loads(arguments["_stdin"].splitlines()[1])]
            self.trips.append(asked)
            if self.broken:
                return False, CommandOutput([OutputLine("stderr", "python3: not found")])
            told = [{"status": 0, "out": [f"{text}!"], "err": []} for text in asked]
            return True, CommandOutput([OutputLine("stdout", json.dumps(told))])
        self.trips.append([text])
        return True, CommandOutput([OutputLine("stdout", f"{text}!")])

    def get_fact(self, fact: type[Told], **arguments: Any) -> str | None:
        command = fact().command
        _, output = self.run_shell_command(command(**arguments) if callable(command) else command, **SUDO)
        return fact().process(output.stdout_lines)

    def put_file(self) -> bool:
        return True

    get_file = rsync = put_file


WORDS = ("a", "b", "c", "d", "e", "f")


def surveyed(host: OneHost, words: tuple[str, ...] = WORDS) -> OneHost:
    survey = Survey(host)  # type: ignore[arg-type]
    survey.take_over()
    survey.foresee(Question(Told, {"word": word}) for word in words)
    return host


def ask(host: OneHost, *words: str) -> None:
    for word in words:
        host.current_op_hash = f"operation of {word}"
        assert host.get_fact(Told, word=word) == f"tell {word}!"


def do(host: OneHost) -> None:
    host.run_shell_command(StringCommand("do"), **SUDO)


def test_all_that_was_foreseen_is_asked_in_one_round_trip() -> None:
    host = surveyed(OneHost())
    ask(host, *WORDS)
    assert host.trips == [[f"tell {word}" for word in WORDS]]


def test_what_was_not_foreseen_is_asked_by_itself_and_takes_nothing_back() -> None:
    host = surveyed(OneHost())
    ask(host, "a", "else", "b")
    assert [len(trip) for trip in host.trips] == [6, 1]


def test_a_fact_of_pyinfras_own_is_asked_as_ever() -> None:
    host = surveyed(OneHost())
    assert host.get_fact(Plain) == "tell plain!"
    assert host.trips == [["tell plain"]]


def test_what_is_done_takes_the_answers_back() -> None:
    host = surveyed(OneHost())
    ask(host, "a", "b", "c")
    do(host)
    ask(host, "d")
    assert host.trips[1:] == [["do"], ["tell d", "tell e", "tell f"]]


def test_a_file_that_is_put_takes_them_back_too() -> None:
    host = surveyed(OneHost())
    ask(host, "a", "b", "c")
    host.put_file()
    ask(host, "d")
    assert host.trips[1] == ["tell d", "tell e", "tell f"]


def test_what_is_done_while_it_is_asked_takes_them_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An operation of another host asks this one, whose own does something meanwhile."""
    host = OneHost()
    answered = host.run_shell_command

    def slow(command: StringCommand | str, **arguments: Any) -> tuple[bool, CommandOutput]:
        said = answered(command, **arguments)
        if len(host.trips) == 1:
            thread = threading.Thread(target=do, args=(host,))
            thread.start()
            thread.join()
        return said

    monkeypatch.setattr(host, "run_shell_command", slow)
    surveyed(host)
    ask(host, "a", "b")
    assert [trip for trip in host.trips if "tell b" in trip] == [[f"tell {word}" for word in WORDS], ["tell b"]]


def test_an_operation_that_asks_again_asks_the_host() -> None:
    host = surveyed(OneHost())
    ask(host, "a", "a", "b")
    assert [len(trip) for trip in host.trips] == [6, 1]
    host.current_op_hash = "another"
    host.get_fact(Told, word="a")
    assert len(host.trips) == 2, "which another operation does for the first time"


def test_while_every_operation_does_something_nothing_is_asked_in_vain() -> None:
    host = surveyed(OneHost())
    for word in WORDS:
        ask(host, word)
        do(host)
    asked = [trip for trip in host.trips if trip != ["do"]]
    assert [len(trip) for trip in asked] == [6, 1, 1, 1, 1, 1]


def test_when_nothing_is_done_any_more_the_rest_is_asked_together() -> None:
    host = surveyed(OneHost(), (*WORDS, "g"))
    ask(host, "a")
    do(host)
    ask(host, "b", "c", "d", "e", "f", "g")
    assert [len(trip) for trip in host.trips] == [7, 1, 1, 1, 4]


def test_each_stage_of_a_run_asks_anew() -> None:
    host = surveyed(OneHost())
    ask(host, *WORDS)
    host.state.current_stage = 4
    ask(host, *WORDS)
    assert [len(trip) for trip in host.trips] == [6, 6]


def test_a_host_that_can_not_be_surveyed_is_asked_one_by_one() -> None:
    host = surveyed(OneHost(broken=True))
    ask(host, *WORDS)
    assert [len(trip) for trip in host.trips] == [6, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("own", [{"_sudo": False}, {"_env": {"A": "b"}}, {"_sudo_user": "other"}, {"_timeout": 3}])
def test_a_fact_that_is_asked_in_a_way_of_its_own_is_asked_by_itself(
    monkeypatch: pytest.MonkeyPatch, own: dict[str, Any]
) -> None:
    host = surveyed(OneHost())
    monkeypatch.setitem(globals(), "SUDO", SUDO | own)
    ask(host, "a", "b")
    assert [len(trip) for trip in host.trips] == [1, 1]


def test_a_connection_that_breaks_breaks_the_fact_that_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ConnectError("gone")

    host = OneHost()
    monkeypatch.setattr(host, "run_shell_command", broken)
    surveyed(host)
    with pytest.raises(ConnectError):
        host.get_fact(Told, word="a")
