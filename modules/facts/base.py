"""What every fact about a host has in common."""

from __future__ import annotations

from typing import Generic, TypeVar

from pyinfra.api import FactBase
from pyinfra.api.exceptions import FactProcessError

T = TypeVar("T")


class HostFact(FactBase["T | None"], Generic[T]):
    """A fact that can fail no host but the one it was asked of.

    A subclass gives `command` (prints at least one line, exits 0, every value in a QuoteString) and `parse`. Whatever
    `parse` raises fails that host with a message; the fact is then None, as it is when the host printed nothing, and
    the asking operation must still come to an end: see `modules.operations.require.unreadable`.
    """

    def parse(self, lines: list[str]) -> T:
        """The fact's value from the lines of its command's standard output (never empty)."""
        raise NotImplementedError

    def process(self, output: list[str]) -> T | None:
        """What pyinfra calls: `parse`, with its errors turned into the one that fails a single host."""
        # pyinfra ends the run of every host at any other exception.
        try:
            return self.parse(output)
        except Exception as error:
            shown = "\n".join(output[:5])
            raise FactProcessError(
                f"{type(self).__name__}: the host's answer was not understood ({type(error).__name__}: {error}). "
                f"It began:\n{shown}"
            ) from None  # pyinfra would show the cause in place of this text
