"""Revisions of models on a host that no release needs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict
from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact

PRUNE_PROGRAM = "/usr/local/lib/tinderbox/unneeded_weights.py"


class UnneededRevision(BaseModel):
    """`revision`: owner/name@commit. `bytes`: what the disk gains when it goes."""

    model_config = ConfigDict(frozen=True)

    revision: str
    bytes: int


def prune_command(verb: str, home: str, keep: Sequence[str]) -> StringCommand:
    """Ask unneeded_weights.py to `list` or to `remove`."""
    words = [verb, "--home", home, *(["--keep", *keep] if keep else [])]
    return StringCommand("python3", PRUNE_PROGRAM, *map(QuoteString, words))


class UnneededWeights(HostFact[list[UnneededRevision]]):
    """What can go; nothing where the programs for hosts are not installed."""

    def command(self, home: str, keep: Sequence[str]) -> StringCommand:
        """Ask the program, where it is.

        + home: the Hugging Face home
        + keep: owner/name@commit of what the fleet file wants
        """
        return StringCommand(
            "if test -e", PRUNE_PROGRAM, "; then", prune_command("list", home, keep), "; else echo '[]'; fi"
        )

    def parse(self, lines: list[str]) -> list[UnneededRevision]:
        """The last line."""
        return [UnneededRevision.model_validate(each) for each in json.loads(lines[-1])]
