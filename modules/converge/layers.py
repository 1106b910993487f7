"""Which layers a removal was asked for, understood before any host is contacted."""

from __future__ import annotations

import os
from pathlib import Path

from modules.hostside.removal import LAYERS
from modules.operations.asked import ASKED_LAYERS, asked_layers

EVERYTHING = "all"
_DEPLOY = "remove.py"


def unknown_layers() -> list[str]:
    """What was asked for and is no layer."""
    return sorted(asked_layers() - {*LAYERS, EVERYTHING})


def layers_problem(deploy: str) -> str | None:
    """Why a removal is refused; None: it is understood, or this is none of layers."""
    given = os.environ.get(ASKED_LAYERS, "")
    if Path(deploy).name != _DEPLOY or not given:
        return None
    unknown = unknown_layers()
    if asked_layers() and not unknown:
        return None
    # Without any layer that deploy would take services off instead.
    return f"{ASKED_LAYERS}: {', '.join(unknown) or repr(given)} is no layer; write some of {', '.join(LAYERS)}, or all"
