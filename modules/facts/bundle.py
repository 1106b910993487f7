"""A bundle on a host."""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict
from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.release import layout
from modules.spec.lock import Lock

PROGRAM = str(layout.PROGRAMS / "bundle_state.py")


class BundleState(BaseModel):
    """What `bundle_state.py` prints; see there. `key`: what it was exported for, None where it is not whole.

    `lock`: what loose wishes stood for where it was made.
    """

    model_config = ConfigDict(frozen=True)

    key: str | None = None
    files: int = 0
    bytes: int = 0
    problems: tuple[str, ...] = ()
    lock: Lock = Lock()


class BundleOnHost(HostFact[BundleState]):
    """Whether a bundle is whole, by the sizes of its files."""

    def command(self, directory: str) -> StringCommand:
        """Ask bundle_state.py, where it is.

        + directory: the bundle's
        """
        return StringCommand(
            *("if test -e", PROGRAM, "; then python3", PROGRAM, QuoteString(directory), "; else echo '{}'; fi")
        )

    def parse(self, lines: list[str]) -> BundleState:
        """The last line."""
        return BundleState.model_validate(json.loads(lines[-1]))
