"""What a host's disks hold, told; and files of root's in a user's cache, repaired."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Sequence
from typing import Any

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.operations.asked import asked_json
from modules.operations.at_hand import run_at_hand
from modules.operations.differences import differs
from modules.operations.require import refusal, unreadable
from modules.reporting.disk import disk_lines, document

LOOK, OWNER = "disk_state.py", "cache_owner.py"
_told: set[str] = set()


def disk_of(asked: Host, wish: dict[str, Any]) -> dict[str, Any] | None:
    """What the host says of its disks; None where it could not."""
    succeeded, output = run_at_hand(asked, LOOK, [json.dumps(wish)])
    said = next((line for line in reversed(output.stdout_lines) if line.startswith("{")), None)
    if not succeeded or said is None:
        for line in output.stderr_lines:
            asked.log(line, log_func=logger.error)
        return None
    found: dict[str, Any] = json.loads(said)
    return found


@operation()
def disk_told(
    images: Sequence[str], revisions: Sequence[str], home: str, repair: bool
) -> Generator[PyinfraCommand, None, None]:
    """Tell what is used by what, who needs it, and which command would free how much. Changes nothing but by `repair`.

    + images: names that the fleet file wants here
    + revisions: owner/name@commit that it wants here
    + home: its Hugging Face home
    + repair: give files of root's in a user's cache to the user
    """
    found = disk_of(host, {"images": list(images), "revisions": list(revisions), "home": home})
    if found is None:
        yield from unreadable("what its disks hold")
        return
    if host.name not in _told:
        # pyinfra asks once while it prepares, and once more while it executes.
        _told.add(host.name)
        for line in disk_lines(found, host.name):
            host.log(line)
        if asked_json():
            sys.stdout.write(json.dumps(document(host.name, found)) + "\n")
    # What has another name elsewhere stays root's, so that a second repair has nothing to do.
    owned = [one for one in found["owned"] if one["files"] > one["linked"]] if repair else []
    if not owned:
        host.noop("nothing is to be repaired")
        return
    for one in owned:
        differs(one["home"], f"{one['files'] - one['linked']} files belong to root, and not to {one['owner']}")
        yield FunctionCommand(_repair, (one["home"],), {})


def _repair(state: State, host: Host, home: str) -> bool:
    """As pyinfra calls it."""
    succeeded, output = run_at_hand(host, OWNER, ["repair", home], changes=True)
    for line in (*output.stdout_lines, *output.stderr_lines):
        host.log(line, log_func=logger.info if succeeded else logger.error)
    return succeeded


@operation()
def repair_understood(value: str | None) -> Generator[PyinfraCommand, None, None]:
    """Refuse a word that asks for something else than is done.

    + value: of the environment variable
    """
    if value in {None, "", "owner"}:
        host.noop("understood")
        return
    yield refusal(f"{host.name}: TINDERBOX_REPAIR={value}: write owner, the only thing that is repaired")
