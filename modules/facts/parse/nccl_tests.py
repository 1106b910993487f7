"""nccl-tests (`all_gather_perf` and its sisters)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import integer, lines_of, number

_PROGRAM = "nccl-tests"
_STARTED = re.compile(r"# Collective test starting: (\S+)")
_CONCLUDED = re.compile(r"# Collective test concluded: (\S+)")
_AVERAGE = re.compile(r"# Avg bus bandwidth\s*: (\S+)")
_BOUNDS = re.compile(r"# Out of bounds values\s*: (\d+) (\S+)")
_RANK = re.compile(r"#\s+Rank\s+(\d+) Group\s+\d+ Pid\s+\d+ on\s+(\S+) device\s+\d+ \[\S+\] (.+)")
_COLUMNS = 13


@dataclass(frozen=True)
class Pass:
    """Time in µs, bandwidths in GB/s. `wrong` is None where the test does not check (`N/A`)."""

    time_us: float
    algbw: float
    busbw: float
    wrong: int | None


@dataclass(frozen=True)
class Message:
    """One message size, in bytes."""

    size: int
    out_of_place: Pass
    in_place: Pass

    @property
    def busbw(self) -> float:
        """The better of both, GB/s."""
        return max(self.out_of_place.busbw, self.in_place.busbw)


@dataclass(frozen=True)
class NcclTest:
    """`average_busbw` is over all sizes, small ones included: on a good link it may be a third of `peak`'s."""

    test: str
    ranks: tuple[str, ...]
    messages: tuple[Message, ...]
    out_of_bounds: int
    average_busbw: float

    @property
    def peak(self) -> Message:
        """The message size with the best bus bandwidth."""
        return max(self.messages, key=lambda message: message.busbw)

    @property
    def wrong(self) -> int:
        """Wrong values, where they were counted."""
        passes = [one for message in self.messages for one in (message.out_of_place, message.in_place)]
        return sum(one.wrong or 0 for one in passes)


def parse_nccl_test(text: str) -> NcclTest:
    """A concluded test; noise of MPI and X may stand before and in it."""
    lines = lines_of(text)
    started, concluded = _find(_STARTED, lines), _find(_CONCLUDED, lines)
    average, bounds = _find(_AVERAGE, lines), _find(_BOUNDS, lines)
    if started is None:
        raise ParseError(_PROGRAM, "no test was started", text=text)
    if concluded is None or average is None or bounds is None:
        raise ParseError(_PROGRAM, f"{started[1]} was not concluded")
    messages = tuple(_message(line, at) for at, line in enumerate(lines, 1) if re.match(r"\s*\d+\s+\d+\s+[a-z]", line))
    if not messages:
        raise ParseError(_PROGRAM, "no row of measurements")
    return NcclTest(
        test=started[1],
        ranks=tuple(match[2] for line in lines if (match := _RANK.fullmatch(line.rstrip()))),
        messages=messages,
        out_of_bounds=int(bounds[1]),
        average_busbw=number(_PROGRAM, average[1]),
    )


def _find(pattern: re.Pattern[str], lines: list[str]) -> re.Match[str] | None:
    return next((match for line in lines if (match := pattern.match(line))), None)


def _message(line: str, at: int) -> Message:
    words = line.split()
    if len(words) != _COLUMNS:
        raise ParseError(_PROGRAM, f"expected {_COLUMNS} columns, got {len(words)}", line=at, text=line)
    return Message(integer(_PROGRAM, words[0], line=at), _pass(words[5:9], at), _pass(words[9:13], at))


def _pass(words: list[str], at: int) -> Pass:
    time, algbw, busbw = (number(_PROGRAM, word, line=at) for word in words[:3])
    return Pass(time, algbw, busbw, None if words[3] == "N/A" else integer(_PROGRAM, words[3], line=at))
