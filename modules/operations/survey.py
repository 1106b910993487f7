"""What operations will ask of a host is asked in one round trip, and handed to them as they come to ask it.

An answer holds until something is done on the host: every command that is no fact takes all answers back. So an
operation sees what it would have seen by asking itself, but for what the host has done of its own accord meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from pyinfra import logger
from pyinfra.api import Host, StringCommand
from pyinfra.connectors.util import CommandOutput, OutputLine

from modules.facts.survey import Answer, Question, survey_answers, survey_command, survey_request

# With fewer it costs more than it spares.
_WORTH = 3
# Facts that were asked one by one since anything was done, before it is taken for done with doing.
_QUIET = 2
_ATTRIBUTE = "tinderbox_survey"
# What says nothing of whom a command runs as, where, and with what.
_PLAIN = frozenset(
    {"_sudo", "_shell_executable", "_success_exit_codes", "_retries", "_retry_delay", "_retry_until", "_temp_dir"}
)
_asking = threading.local()


def survey(host: Host, questions: Iterable[Question[Any]]) -> None:
    """Have these questions asked together, when the first of them is asked."""
    # What a deploy calls `host` stands for another one in each of its hosts.
    host = host.state.inventory.get_host(host.name)
    found = getattr(host, _ATTRIBUTE, None)
    if found is None:
        found = Survey(host)
        setattr(host, _ATTRIBUTE, found)
        found.take_over()
    found.foresee(questions)


def output_of(answer: Answer) -> tuple[bool, CommandOutput]:
    """An answer as pyinfra's connectors give it."""
    lines = [*(OutputLine("stdout", line) for line in answer.out), *(OutputLine("stderr", line) for line in answer.err)]
    return answer.succeeded, CommandOutput(lines)


class Survey:
    """Of one host: what will be asked, and what was answered in this stage of the run."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._run, self._fact = host.run_shell_command, host.get_fact
        self._known: dict[str, StringCommand] = {}
        self._left: set[str] = set()
        self._answers: dict[str, Answer] = {}
        self._given: set[tuple[str, str | None]] = set()
        self._stage: object = None
        self._handed, self._quiet, self._works = 0, 0, True
        self._done = 0
        # Other hosts' operations ask this host, too.
        self._lock = threading.RLock()

    def take_over(self) -> None:
        """Have the host's commands and facts come by here."""
        host: Any = self._host
        host.run_shell_command, host.get_fact = self.run, self.fact
        for name in ("put_file", "get_file", "rsync"):
            setattr(host, name, self._doing(getattr(host, name)))

    def foresee(self, questions: Iterable[Question[Any]]) -> None:
        """Add what will be asked."""
        commands = {command.get_raw_value(): command for command in (question.command for question in questions)}
        self._left |= commands.keys() - self._known.keys()
        self._known |= commands

    def fact(self, *arguments: Any, **keywords: Any) -> Any:
        """`Host.get_fact`: what runs meanwhile, here, only asks."""
        before = getattr(_asking, "host", None)
        _asking.host = self._host
        try:
            return self._fact(*arguments, **keywords)
        finally:
            _asking.host = before

    def run(
        self, command: StringCommand | str, print_output: bool = False, print_input: bool = False, **arguments: Any
    ) -> tuple[bool, CommandOutput]:
        """`Host.run_shell_command`."""
        asks = getattr(_asking, "host", None) is self._host
        if not asks:
            self._forget()
        elif self._works and not (print_output or print_input) and _is_plain(arguments):
            # Facts of pyinfra's own have plain strings.
            text = command if isinstance(command, str) else command.get_raw_value()
            answer = self._answer(text, arguments)
            if answer is not None:
                return output_of(answer)
        if asks:
            self._quiet += 1
        try:
            return self._run(command, print_output=print_output, print_input=print_input, **arguments)
        finally:
            if not asks:
                self._forget()

    def _answer(self, text: str, arguments: dict[str, Any]) -> Answer | None:
        if text not in self._known:
            return None
        with self._lock:
            state = self._host.state
            if state.current_stage != self._stage:
                self._stage, self._left, self._handed, self._quiet = state.current_stage, set(self._known), _WORTH, 0
                self._answers.clear()
                self._given.clear()
            # An operation that asks again wants to know what is there by now.
            this = (text, self._host.current_op_hash)
            if this in self._given:
                return None
            if text not in self._answers and text in self._left and self._is_worth_it():
                self._ask(arguments)
            self._left.discard(text)
            found = self._answers.get(text)
            if found is not None:
                self._given.add(this)
                self._handed += 1
            return found

    def _is_worth_it(self) -> bool:
        return len(self._left) >= _WORTH and (self._handed >= _WORTH or self._quiet >= _QUIET)

    def _ask(self, arguments: dict[str, Any]) -> None:
        asked = {text: self._known[text] for text in sorted(self._left)}
        logger.debug("%s: asked %d questions at once", self._host.name, len(asked))
        given = arguments | {"_stdin": survey_request(asked.values())}
        done = self._done
        succeeded, output = self._run(survey_command(), print_output=False, print_input=False, **given)
        self._handed, self._quiet = 0, 0
        try:
            if not succeeded:
                raise ValueError(output.stderr)
            answers = dict(zip(asked, survey_answers(output.stdout_lines, len(asked)), strict=True))
            # While another host's operation asked, this host's own may have done something.
            self._answers = answers if done == self._done else {}
        except (ValueError, KeyError, TypeError) as error:
            # Each question by itself says better what is wrong.
            logger.debug("%s: no survey: %s", self._host.name, error)
            self._works = False

    def _forget(self) -> None:
        self._done += 1
        self._answers.clear()
        self._given.clear()
        self._quiet = 0

    def _doing(self, does: Any) -> Any:
        def done(*arguments: Any, **keywords: Any) -> Any:
            self._forget()
            try:
                return does(*arguments, **keywords)
            finally:
                self._forget()

        return done


def _is_plain(arguments: dict[str, Any]) -> bool:
    """Whether a fact is asked as most are: as root by sudo, in no environment of its own, for as long as it takes."""
    return bool(arguments.get("_sudo")) and not any(value for name, value in arguments.items() if name not in _PLAIN)
