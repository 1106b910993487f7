"""Take back what Tinderbox has put on a host, in layers."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.operations.asked import operator
from modules.operations.at_hand import run_at_hand
from modules.operations.differences import differs
from modules.operations.fabric import fabric_settled
from modules.operations.gate_memory import forget_service
from modules.operations.require import foreseen, unreadable
from modules.reporting.removal import Removal, removal_lines

PROGRAM = "remove_layers.py"
_NOTE = "note: "
_FABRIC, _SERVICE = "fabric ", "service "


def planned_removal(asked: Host, layers: Sequence[str]) -> Removal | None:
    """What the host says would go and stay; None where it could not."""
    succeeded, output = run_at_hand(asked, PROGRAM, ["plan", *layers])
    document = next((line for line in reversed(output.stdout_lines) if line.startswith("{")), None)
    if not succeeded or document is None:
        for line in output.stderr_lines:
            asked.log(line, log_func=logger.error)
        return None
    try:
        return Removal.of(json.loads(document))
    except (ValueError, KeyError, TypeError):
        return None


@operation()
def layers_removed(
    layers: Sequence[str], member: str, simulated: bool = False
) -> Generator[PyinfraCommand, None, None]:
    """Have nothing of these layers on the host but what others use; files that were there before are there again.

    What goes and what stays is told, in a dry run, too.

    + layers: of modules/hostside/removal.py
    + member: the host's name in a fabric
    + simulated: a lab host
    """
    found = planned_removal(host, layers)
    if found is None:
        yield from unreadable("what Tinderbox has put there")
        return
    if found.refused is not None:
        yield foreseen(f"{host.name}: nothing was removed: {found.refused}")
        return
    for line in removal_lines(found):
        host.log(line)
    if not found.going:
        host.noop(f"nothing of {', '.join(layers)} is to go")
        return
    for one in found.going:
        differs(one["title"], "is there, and would go")
    if any(one["title"].startswith(_FABRIC) for one in found.going):
        # It takes itself back where the host is not reached afterwards, so the controller has to confirm.
        yield from fabric_settled._inner(fabric=None, member=member, simulated=simulated)
    yield FunctionCommand(_remove, (list(layers), found), {})


def _remove(state: State, host: Host, layers: Sequence[str], found: Removal) -> bool:
    """As pyinfra calls it."""
    succeeded, output = run_at_hand(host, PROGRAM, ["remove", *layers, "--by", operator()], changes=True)
    for line in output.stdout_lines:
        if line.startswith(_NOTE):
            host.log(line.removeprefix(_NOTE), log_func=logger.warning)
        else:
            logger.debug("%s: %s", host.name, line)
    for line in output.stderr_lines:
        host.log(line, log_func=logger.error if not succeeded else logger.debug)
    for one in found.going:
        if one["title"].startswith(_SERVICE):
            forget_service(state, host, one["title"].removeprefix(_SERVICE))
    if not succeeded:
        host.log("not all could be taken away; the lines above say what. Run again: it goes on", log_func=logger.error)
    return succeeded
