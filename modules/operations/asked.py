"""What an operator asks for beside the fleet file, by environment variables, and who that is."""

from __future__ import annotations

import getpass
import os
import socket

FORCE = "TINDERBOX_FORCE"
SERVICE = "TINDERBOX_SERVICE"
RELEASE = "TINDERBOX_RELEASE"
REMOVE = "TINDERBOX_REMOVE"
# Set by `modules.converge` for the runs of a rollout.
ROLLOUT = "TINDERBOX_ROLLOUT"


def forced() -> bool:
    """Whether a release that has failed is to be tried again: `TINDERBOX_FORCE=1`."""
    return os.environ.get(FORCE, "") not in {"", "0"}


def asked_service() -> str | None:
    """The one service that is meant: `TINDERBOX_SERVICE=name`."""
    return os.environ.get(SERVICE) or None


def asked_release() -> str | None:
    """The release that is meant: `TINDERBOX_RELEASE=id`."""
    return os.environ.get(RELEASE) or None


def asked_removals() -> frozenset[str]:
    """What else is to go with a service: `TINDERBOX_REMOVE=weights,images`."""
    return frozenset(word.strip() for word in os.environ.get(REMOVE, "").split(",") if word.strip())


def rollout() -> str:
    """The rollout and its step that this run is a part of, as `5f3a1c2b: batch 2 of 5`; empty where it is of none."""
    return os.environ.get(ROLLOUT, "")


def operator() -> str:
    """Who runs this, for the ledger: user@controller."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
