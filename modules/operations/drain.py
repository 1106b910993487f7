"""Whether gateways send a host requests for a service: the host itself says so (modules/hostside/drain.py)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pyinfra.api import Host, QuoteString, State, StringCommand

from modules.operations.follow import pause
from modules.operations.reach import UnreachableError, ask
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "drain.py")


def held(service: str) -> StringCommand:
    """Have gateways send it nothing more while it is measured, and wait until it is at nothing of theirs."""
    return StringCommand(layout.PYTHON, PROGRAM, "hold", QuoteString(service), "--measure")


def stays(service: str) -> StringCommand:
    """Say that it is still measured: else gateways send it requests again within minutes."""
    return StringCommand(layout.PYTHON, PROGRAM, "stay", QuoteString(service))


def opened(service: str, *, if_good: bool = False) -> StringCommand:
    """Have gateways send it requests again. `if_good`: only where the last good release is the one in force."""
    return StringCommand(layout.PYTHON, PROGRAM, "open", QuoteString(service), *(["--if-good"] if if_good else []))


def measured(state: State, host: Host, measure: Callable[..., bool], arguments: tuple[Any, ...], service: str) -> bool:
    """Measure a drained service; one that was good before is sent requests again where nothing came of it."""
    done = measure(state, host, *arguments)
    if not done:
        with suppress(UnreachableError):
            ask(host, opened(service, if_good=True), pause)
    return done
