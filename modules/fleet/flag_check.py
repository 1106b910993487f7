"""Check the values of flags whose range is certain, so that no start is lost to a slip of the pen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modules.spec.engine import Engine, Flags, FlagValue, KnownFlags


@dataclass(frozen=True)
class Range:
    """What a numeric flag takes. `least` and `most` are taken, too, but for a `least` that is `open`.

    `also`: a value outside of it that the engine reads as "decide yourself".
    """

    least: float = 1
    most: float | None = None
    open: bool = False
    also: float | None = None

    def holds(self, number: float) -> bool:
        """Whether the engine takes the number."""
        above = number > self.least if self.open else number >= self.least
        return number == self.also or (above and (self.most is None or number <= self.most))

    def text(self) -> str:
        """For people."""
        if self.most is None:
            text = f"{self.least:g} or more"
        else:
            text = f"{'above ' if self.open else ''}{self.least:g} to {self.most:g}"
        return text if self.also is None else f"{text}, or {self.also:g}"


_SHARE = Range(0, 1, open=True)
# vllm/config/scheduler.py, cache.py, parallel.py, model.py (-1: what fits); sglang server_args.py;
# llama.cpp common/arg.cpp (ctx-size 0: the model's own).
_VLLM = {
    "max-num-seqs": Range(),
    "max-num-batched-tokens": Range(),
    "max-model-len": Range(also=-1),
    "gpu-memory-utilization": _SHARE,
    "tensor-parallel-size": Range(),
    "pipeline-parallel-size": Range(),
}
_SGLANG = {
    "max-running-requests": Range(),
    "context-length": Range(),
    "mem-fraction-static": _SHARE,
    "tp-size": Range(),
}
_LLAMA = {"ctx-size": Range(0), "batch-size": Range(), "ubatch-size": Range()}


def flag_faults(engine: Engine, flags: Flags, catalogued: KnownFlags | None) -> Iterator[tuple[str, str, str]]:
    """Flag, what is wrong with its value, what to do. A flag or a form of value that is not known is passed over."""
    ranges = _ranges(engine)
    # Of those, it is told below what they take.
    yield from number_faults(
        {name: one for name, one in flags.items() if name not in ranges or one is not True}, catalogued
    )
    for name, value in flags.items():
        known = ranges.get(name)
        if known is None or value is False:
            continue
        number = _number(value)
        if value is True or (number is not None and not known.holds(number)):
            given = "no number" if value is True else f"{value}"
            yield name, f"{given} is nothing that --{name} can mean: it takes {known.text()}", "correct the number"


def number_faults(flags: Flags, known: KnownFlags | None) -> Iterator[tuple[str, str, str]]:
    """The same of flags that take a number, and were given what no engine can read as one."""
    for name, value in flags.items():
        if known is not None and known.lacks_number(name, value):
            yield name, f"--{name} takes a number, and {_given(value)} is none", "correct it"


def _given(value: FlagValue) -> str:
    if isinstance(value, tuple):
        return "a list"
    return "true" if value is True else repr(value)


def _ranges(engine: Engine) -> dict[str, Range]:
    program = engine.command[0]
    if "sglang.launch_server" in engine.command:
        return _SGLANG
    return {"vllm": _VLLM, "llama-server": _LLAMA}.get(program, {})


def _number(value: FlagValue) -> float | None:
    """None: a list, or a text such as `32k` or `auto`, which engines read in ways of their own."""
    try:
        return None if isinstance(value, tuple) else float(value)
    except ValueError:
        return None
