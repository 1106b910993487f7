"""The flags that a program's help names, and the values that it says they take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

# argparse indents flags by two, llama.cpp not at all; what they say of a flag stands further in.
_DEFINITION = re.compile(r" {0,4}(-.*)")
# Two spaces end what defines the flag, unless they follow a comma: `-c,    --ctx-size N      size of the prompt`.
_DESCRIPTION = re.compile(r"(?<![,\s])\s{2,}")
_FLAG = re.compile(r"(?<![\w-])--([a-z0-9][a-z0-9-]*)(?: \[?\{([^}]*)\})?")


@dataclass
class HelpText:
    """Flags without their dashes. `choices`: flag → values."""

    flags: set[str] = field(default_factory=set)
    choices: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, lines: Iterable[str]) -> HelpText:
        """From the lines of a help, and whatever else a program prints beside it."""
        found = cls()
        for line in lines:
            if definition := _DEFINITION.fullmatch(line.rstrip()):
                for flag, values in _FLAG.findall(_DESCRIPTION.split(definition[1])[0]):
                    found.flags.add(flag)
                    if values:
                        found.choices[flag] = values.split(",")
        return found
