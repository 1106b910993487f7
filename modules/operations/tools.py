"""Tinderbox's own tools on a host."""

from __future__ import annotations

import hashlib
from collections.abc import Generator

from pyinfra import host
from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.survey import Question
from modules.facts.tools import ToolsInUse
from modules.operations.differences import differs
from modules.operations.hostside import programs
from modules.operations.job import Job, run_job
from modules.release import layout

_TIMEOUT_S = 3600
TOOLS_THERE = Question(ToolsInUse)


def lock_identity(lock: bytes) -> str:
    """What the host calls the environment that is built from `lock` (`install_tools.identity`)."""
    return hashlib.sha256(lock).hexdigest()[:12]


@operation()
def tools_installed() -> Generator[PyinfraCommand, None, None]:
    """Have the locked Python environment with the hub's client and the benchmark on the host.

    pip takes its index, its proxy and the trusted authorities from the site's network settings, as every job does.
    """
    wanted = lock_identity(programs()["tools.lock"])
    found = TOOLS_THERE.of(host)
    if found == wanted:
        host.noop(f"tools {wanted} are in use")
        return
    differs("the tools' environment", f"is {found or 'none'}, and should be {wanted}")
    command = (layout.PYTHON, str(layout.PROGRAMS / "install_tools.py"))
    yield from run_job(Job("tools", wanted, "tools", command, _TIMEOUT_S, "fetch"))
