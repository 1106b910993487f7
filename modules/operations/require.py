"""Requirements: how an operation refuses a host, and only that host, with a message.

pyinfra ends the run of every host when an operation raises, so nothing here does: a refusal is a command that prints
the message to standard error and fails.
"""

from __future__ import annotations

from collections.abc import Generator

from pyinfra import host, logger, state
from pyinfra.api import QuoteString, StringCommand, operation

from modules.reporting.host_errors import note_foreseen


def refusal(message: str) -> StringCommand:
    """The command that fails the host with `message` (may have several lines)."""
    return StringCommand("printf '%s\\n'", QuoteString(message), ">&2; exit 1")


def foreseen(message: str) -> StringCommand:
    """As `refusal`, for what no stage before can put right: a dry run, which tries nothing, says it all the same."""
    if host.current_op_hash is not None and not state.is_executing:
        host.log(f"would be refused: {message}", log_func=logger.warning)
        note_foreseen(host.name, ", ".join(state.get_op_meta(host.current_op_hash).names), message)
    return refusal(message)


def required(ok: bool, message: str) -> Generator[StringCommand, None, None]:
    """The inner form, for operations that yield from it; the host gets past it only when `ok`.

    Callers still `return` after it where the code that follows could not bear the false case: a dry run and a host that
    answers every command with success (pyinfra's `@fake`) go on.
    """
    if not ok:
        yield refusal(message)


def unreadable(what: str) -> Generator[StringCommand, None, None]:
    """The refusal of an operation whose fact is None: the host gave no answer, or one that was not understood."""
    yield refusal(f"{host.name}: {what} could not be read; the lines above say why")


@operation()
def require(ok: bool, message: str) -> Generator[StringCommand, None, None]:
    """Fail this host, and no other, with `message` unless `ok`.

    + ok: whether the requirement is met
    + message: what is wrong, where, and what to do; several lines are fine
    """
    if ok:
        host.noop("requirement met")
        return
    yield refusal(message)
