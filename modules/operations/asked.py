"""What an operator asks for beside the fleet file, by environment variables, and who that is."""

from __future__ import annotations

import getpass
import os
import socket

FORCE = "TINDERBOX_FORCE"
SERVICE = "TINDERBOX_SERVICE"
RELEASE = "TINDERBOX_RELEASE"
SINCE = "TINDERBOX_SINCE"
REMOVE = "TINDERBOX_REMOVE"
ASKED_LAYERS = "TINDERBOX_LAYERS"
REPAIR, JSON = "TINDERBOX_REPAIR", "TINDERBOX_JSON"
NIGHTLY, NIGHTLY_AT = "TINDERBOX_NIGHTLY", "TINDERBOX_NIGHTLY_AT"
NIGHTLY_DEPLOY = "TINDERBOX_NIGHTLY_DEPLOY"
NIGHTLY_METRICS, NIGHTLY_GATE = "TINDERBOX_NIGHTLY_METRICS", "TINDERBOX_NIGHTLY_GATE"
_NIGHT = "*-*-* 03:00:00"
ADOPT = "TINDERBOX_ADOPT"
ADOPT_FOUND = "TINDERBOX_ADOPT_FOUND"
# Set by `modules.bootstrap` once the first login is made, for the run of deploys/bootstrap.py that follows it.
OPENED = "TINDERBOX_OPENED"
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


def asked_since() -> str | None:
    """Since when logs are wanted: `TINDERBOX_SINCE=10m`."""
    return os.environ.get(SINCE) or None


def asked_removals() -> frozenset[str]:
    """What else is to go with a service: `TINDERBOX_REMOVE=weights,images`."""
    return frozenset(word.strip() for word in os.environ.get(REMOVE, "").split(",") if word.strip())


def asked_layers() -> frozenset[str]:
    """Which layers are to be taken back: `TINDERBOX_LAYERS=engine,images`, or `all`."""
    return frozenset(word.strip() for word in os.environ.get(ASKED_LAYERS, "").split(",") if word.strip())


def asked_repair() -> bool:
    """Whether files of root's in a user's cache are to be given to the user: `TINDERBOX_REPAIR=owner`."""
    return os.environ.get(REPAIR) == "owner"


def asked_json() -> bool:
    """Whether what is told is told as JSON, too, on standard output: `TINDERBOX_JSON=1`."""
    return os.environ.get(JSON, "") not in {"", "0"}


def adopt() -> str:
    """What is asked of the servers that run already: `TINDERBOX_ADOPT=take` or `undo`; empty: to describe them."""
    return os.environ.get(ADOPT, "")


def adopt_found() -> str | None:
    """The folder on this machine where what each host showed is to be written; set by `modules.adopt`."""
    return os.environ.get(ADOPT_FOUND) or None


def nightly_off() -> bool:
    """Whether the nightly check is to go: `TINDERBOX_NIGHTLY=off`."""
    return os.environ.get(NIGHTLY) == "off"


def nightly_at() -> str:
    """When it runs, in systemd's words: `TINDERBOX_NIGHTLY_AT`; at three, and up to half an hour later."""
    return os.environ.get(NIGHTLY_AT) or _NIGHT


def nightly_deploy() -> str | None:
    """The deploy file whose drift is looked for, if it is not deploys/spark.py: `TINDERBOX_NIGHTLY_DEPLOY`."""
    return os.environ.get(NIGHTLY_DEPLOY) or None


def nightly_metrics() -> str | None:
    """Where it leaves its figures for node exporter: `TINDERBOX_NIGHTLY_METRICS`."""
    return os.environ.get(NIGHTLY_METRICS) or None


def nightly_gate() -> bool:
    """Whether it measures the services, too: unless `TINDERBOX_NIGHTLY_GATE=0`."""
    return os.environ.get(NIGHTLY_GATE, "1") != "0"


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
