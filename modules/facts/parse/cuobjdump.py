"""`cuobjdump`: which GPUs a library has code for, and the FP4 instructions in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of
from modules.hostside.device_code import DeviceCode

_PROGRAM = "cuobjdump"
_LISTED = re.compile(r"ELF file +(\d+): (\S+\.(sm_\d+[af]?)\.cubin)")
_NOTHING = re.compile(r"cuobjdump info +: File '.*' does not contain device code")
_FATAL = re.compile(r"cuobjdump (?:fatal|error) +: (.*)")


@dataclass(frozen=True)
class ListedElf:
    """A piece of machine code by its name. `target` is the name's: plain `sm_121` also stands for 12.1f."""

    index: int
    name: str
    target: str


def parse_list_elf(text: str) -> tuple[ListedElf, ...]:
    """`--list-elf`: empty for a library without code for GPUs."""
    listed = []
    for number, line in enumerate(lines_of(text), 1):
        if found := _LISTED.fullmatch(line.strip()):
            listed.append(ListedElf(int(found[1]), found[2], found[3]))
        else:
            _pass_over(line, number)
            if line.strip() and not _NOTHING.match(line):
                raise ParseError(_PROGRAM, "not a line of --list-elf", line=number, text=line)
    _require(text, known=bool(listed))
    return tuple(listed)


def parse_device_code(text: str) -> DeviceCode:
    """A dump (`--dump-elf`, `--dump-elf-symbols`, `--dump-resource-usage`, `--dump-sass`).

    Empty for a library without code for GPUs. FP4 instructions stand in `--dump-sass` only.
    """
    code = DeviceCode()
    for number, line in enumerate(lines_of(text), 1):
        _pass_over(line, number)
        code.hear(line)
    _require(text, known=bool(code.machine or code.ptx) or code.cut_off)
    if code.cut_off:
        raise ParseError(_PROGRAM, "cut off: the last piece of code does not say what it is for", text=text[-200:])
    return code


def _pass_over(line: str, number: int) -> None:
    if failed := _FATAL.match(line):
        raise ParseError(_PROGRAM, failed[1].strip(), line=number)


def _require(text: str, *, known: bool) -> None:
    if not known and not any(_NOTHING.match(line) for line in lines_of(text)):
        raise ParseError(_PROGRAM, "names no code, and does not say that there is none", text=text)
