"""Jobs of ours that run, and what finished ones have left, by the layer that they work for."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.ledger import STATE
    from modules.hostside.removal import ENGINE, IMAGES, SYSTEM, WEIGHTS, Thing
    from modules.hostside.service_unit import run
else:
    from ledger import STATE
    from removal import ENGINE, IMAGES, SYSTEM, WEIGHTS, Thing
    from service_unit import run

JOB = "job"
_PREFIX = "tinderbox-job-"
_LAYERS = {
    ENGINE: ("start-", "gate-", "load-"),
    IMAGES: ("image-", "base-", "attest-", "offer-", "receive-", "bundle-"),
    WEIGHTS: ("weights-", "encodings-", "verify-", "swarm-", "take-", "share-"),
}
# Transient, and no job (modules/hostside/offer_images.py).
_OFFER = "tinderbox-offer.service"


def layer_of(job: str) -> str:
    """For which layer a job works."""
    return next((layer for layer, starts in _LAYERS.items() if job.startswith(starts)), SYSTEM)


def things() -> Iterator[Thing]:
    """Those that run."""
    words = ("--plain", "--no-legend", "--state=active,activating")
    listed = run("systemctl", "list-units", *words, f"{_PREFIX}*", _OFFER)
    for unit in sorted(line.split()[0] for line in (listed or "").splitlines() if line.strip()):
        job = unit.removeprefix(_PREFIX).removesuffix(".service")
        layer = IMAGES if unit == _OFFER else layer_of(job)
        yield Thing(layer, JOB, job, note="it runs, and is ended", data={"unit": unit})


def take(thing: Thing) -> None:
    """End it."""
    subprocess.run(["systemctl", "stop", str(thing.data["unit"])], capture_output=True, check=False)


def tidy(layer: str, state: Path = STATE) -> None:
    """Take away what jobs of a layer have left."""
    for path in (state / "jobs").glob("*/"):
        if layer_of(path.name) == layer:
            shutil.rmtree(path, ignore_errors=True)
