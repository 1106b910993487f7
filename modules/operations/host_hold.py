"""Hold a host for this run, so that two controllers do not change it at the same time."""

from __future__ import annotations

import os
from collections.abc import Generator

from pyinfra import host, state
from pyinfra.api import StringCommand, operation

from modules.operations.hold import BROKEN, TakenError, is_held, take
from modules.operations.require import refusal
from modules.spec.holder import HOLD


@operation()
def host_held() -> Generator[StringCommand, None, None]:
    """Have no other controller's run change this host while this one lasts; refuse it where one does already.

    Nothing is left on the host, and it is no change: it ends with the connection, and is taken again with a new one.
    A dry run holds nothing.
    """
    if (
        os.environ.get(HOLD) == "0"
        or not state.is_executing
        or is_held(host.name)
        or getattr(host.connector, "client", None) is None
    ):
        host.noop("held while a run changes it")
        return
    try:
        # Not pyinfra's `host`, which is another, or none, in whatever goes on beside this operation.
        take(state.inventory.get_host(host.name))
    except TakenError as error:
        yield refusal(f"{host.name}: {error}")
    except BROKEN as error:
        yield refusal(f"{host.name}: it could not be held for this run: {type(error).__name__}: {error}")
