"""While a service is measured, and no longer, gateways send it nothing: said again and again by the measurement."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.drain_mark import Mark
else:
    from drain_mark import Mark

_AGAIN_S = 30.0


class StayDrained(threading.Thread):
    """Has the mark of a measurement count until it is left (a context manager), or its process ends."""

    def __init__(self, mark: Mark, again_s: float = _AGAIN_S) -> None:
        super().__init__(daemon=True)
        self._mark, self._again_s = mark, again_s
        self._ended = threading.Event()

    def run(self) -> None:  # noqa: D102
        while not self._ended.is_set():
            self._mark.stay()
            self._ended.wait(self._again_s)

    def __enter__(self) -> StayDrained:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self.join(timeout=30)
