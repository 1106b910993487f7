"""Figures that the controller measured → the job on the host that samples meanwhile and keeps the result.

The job makes an empty file and waits until figures stand in it, which come in one step. When the file is taken away,
another measurement has begun.

Usage: gate_delivery.py SERVICE TOKEN < JSON
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import write_text
    from modules.hostside.gate_benchy import refuse
    from modules.hostside.ledger import STATE
    from modules.hostside.progress import Progress
else:
    from atomic import write_text
    from gate_benchy import refuse
    from ledger import STATE

# What the controller looks for to begin.
AWAITED = "waiting for the controller's figures"
# No `.json`: whoever lists results shall not find it.
_SUFFIX = ".client"
_PAUSE_S = 0.5


class Delivery:
    """The file of one measurement. A context manager: made on entering, gone on leaving."""

    def __init__(self, service: str, token: str, state: Path = STATE) -> None:
        self._folder = state / "gates" / service
        self._path = self._folder / f"{token}{_SUFFIX}"

    def __enter__(self) -> Delivery:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._path.touch(exist_ok=False)
        except FileExistsError:
            raise refuse("the host went down while it was measured; the next run measures anew") from None
        for other in self._folder.glob(f"*{_SUFFIX}"):
            if other != self._path:
                other.unlink(missing_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._path.unlink(missing_ok=True)

    def awaited(self, until: float, progress: Progress) -> dict[str, Any]:
        """The figures. `until`: of the monotonic clock; refuses where none have come by then."""
        while time.monotonic() < until:
            try:
                text = self._path.read_text(encoding="utf-8")
            except FileNotFoundError:
                raise refuse("another measurement from the controller has begun") from None
            if text:
                return dict(json.loads(text))
            progress.report(AWAITED)
            time.sleep(_PAUSE_S)
        raise refuse("no figures came from the controller within the time budget; the next run measures anew")

    def deliver(self, text: str) -> None:
        """Give the figures to the job that waits for them. Refuses where none does."""
        json.loads(text)
        if not self._path.exists():
            raise SystemExit("the job on the host that waited for these figures has ended")
        write_text(self._path, text)


def main(arguments: list[str]) -> int:
    """Take the figures from standard input."""
    if len(arguments) != 2:
        sys.stderr.write((__doc__ or "").splitlines()[-1] + "\n")
        return 2
    Delivery(arguments[0], arguments[1]).deliver(sys.stdin.read())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
