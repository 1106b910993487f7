"""What pyinfra would ask at a terminal, where there is none."""

from __future__ import annotations

import sys

from pyinfra.context import state


def ask_nobody() -> None:
    """Without a terminal, go on with the other hosts when one fails, as --yes does.

    Without --yes pyinfra asks whether to; a dry run in CI would end there for all of them, in a traceback.
    """
    if state.should_raise_failed_hosts is not None and not sys.stdin.isatty():
        state.should_raise_failed_hosts = _others_go_on


def _others_go_on(_: object) -> bool:
    return False
