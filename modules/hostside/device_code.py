"""What a library holds for GPUs, from the lines that cuobjdump prints of it, one after the other: dumps have no end.

The name under which `--list-elf` shows a piece of code proves nothing: it is `sm_121` for 12.1f as for plain 12.1. The
line `arch = …` at the head of each piece in a dump tells them apart. PTX has such a head, too, and is no machine code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HEAD = re.compile(r"Fatbin (\w+) code:")
_TARGET = re.compile(r"arch = (sm_\d+[af]?)")
_FUNCTION = re.compile(r"\s*Function : (\S+)")
# A block-scaled multiplication (.SF) with FP4 numbers (E2M1) on at least one side. OMMA has them on both; QMMA can mix
# them with FP8, as kernels for MXFP4 weights and FP8 activations do.
_FP4 = re.compile(r"\b[OQ]MMA\.SF(?:\.\w+)*\.E2M1(?:\.\w+)*")
# Symbols of kernels whose name tells of FP4: `float_e2m1_t`, `mxf4`, `BlockScaled`.
_KERNEL = re.compile(r".*\bSTO_ENTRY\s+(\S+)")
_TELLING = r"[Ee]2[Mm]1|[Ff][Pp]4|[Xx][Ff]4|[Bb]lock_?[Ss]cale"
_TELLING_NAME = re.compile(_TELLING)
# What of a dump this module understands, for a grep in front of it: most of a dump is of no interest.
WANTED_LINES = (
    r"^Fatbin |^arch = |^[[:space:]]*Function : |[OQ]MMA[.]SF[.].*E2M1|^cuobjdump |STO_ENTRY .*(" + _TELLING + ")"
)


@dataclass(frozen=True)
class Fp4Instruction:
    """A native block-scaled FP4 multiplication: in code for which target, in which function (as compilers spell it)."""

    opcode: str
    target: str
    function: str | None


@dataclass
class DeviceCode:
    """Target → number of pieces, for machine code and for PTX. `fp4`: the first FP4 multiplication of each target.

    `telling`: target → kernels whose names tell of FP4; to be looked at first, and no proof of anything.
    """

    machine: dict[str, int] = field(default_factory=dict)
    ptx: dict[str, int] = field(default_factory=dict)
    fp4: dict[str, Fp4Instruction] = field(default_factory=dict)
    telling: dict[str, list[str]] = field(default_factory=dict)
    _kind: str | None = None
    _target: str | None = None
    _function: str | None = None

    def hear(self, line: str) -> bool:
        """Take in a line; whether it said anything."""
        if found := _HEAD.match(line):
            self._kind, self._target, self._function = found[1], None, None
        elif self._kind is not None and self._target is None and (found := _TARGET.match(line)):
            self._begin(found[1])
        elif found := _FUNCTION.match(line):
            self._function = found[1]
        elif self._kind == "elf" and self._target is not None and (found := _FP4.search(line)):
            self.fp4.setdefault(self._target, Fp4Instruction(found[0], self._target, self._function))
        elif self._kind == "elf" and self._target is not None and (found := _KERNEL.fullmatch(line)):
            if _TELLING_NAME.search(found[1]):
                self.telling.setdefault(self._target, []).append(found[1])
        else:
            return False
        return True

    @property
    def cut_off(self) -> bool:
        """Whether a piece has begun of which it is not known yet what it is for."""
        return self._kind is not None and self._target is None

    def _begin(self, target: str) -> None:
        self._target = target
        counted = {"elf": self.machine, "ptx": self.ptx}.get(self._kind or "")
        if counted is not None:
            counted[target] = counted.get(target, 0) + 1
