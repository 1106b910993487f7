"""A model's files on a host."""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict
from pyinfra.api import StringCommand

from modules.facts.base import HostFact
from modules.facts.program import AskProgram

VERIFY_PROGRAM = "/usr/local/lib/tinderbox/verify_weights.py"


class WeightsState(BaseModel):
    """What `verify_weights.py` prints; see there. `commit`: what the revision stands for on the host."""

    model_config = ConfigDict(frozen=True)

    commit: str | None = None
    stamped: bool = False
    filters: dict[str, tuple[str, ...]] = {}
    manifest: str | None = None
    files: int = 0
    bytes: int = 0
    problems: tuple[str, ...] = ()
    held: int = 0
    addresses: tuple[str, ...] = ()
    address: str | None = None


class WeightsOnHost(HostFact[WeightsState]):
    """Whether a model is there, verified, and untouched since: by size, time and inode of its files, without reading.

    Where the programs for hosts are not installed yet nothing was verified either.
    """

    def command(self, repository: str, revision: str, home: str) -> StringCommand:
        """Ask verify_weights.py, where it is.

        + repository: owner/name on the hub
        + revision: commit, tag or branch
        + home: the Hugging Face home
        """
        words = ["--repository", repository, "--revision", revision, "--home", home]
        return AskProgram("python3", VERIFY_PROGRAM, words, absent="{}")

    def parse(self, lines: list[str]) -> WeightsState:
        """The last line."""
        return WeightsState.model_validate(json.loads(lines[-1]))
