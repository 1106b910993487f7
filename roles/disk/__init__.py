"""Disks: what Tinderbox and its kind use of them, and what would be freed by what (docs/disk.md)."""

from __future__ import annotations

import os

from pyinfra import host
from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.asked import REPAIR, asked_repair
from modules.operations.connection import keep_alive
from modules.operations.disk import disk_told, repair_understood
from modules.operations.image_survey import recipes_of, references_of
from modules.operations.weights import Wanted, wish_of
from roles.preflight.sudo import stop_where_sudo_asks
from roles.weights.models import needed


@deploy("Disk")
def disk(plan: HostPlan) -> None:
    """Tell of the host's disks. Changes nothing, unless files of root's in a user's cache are to be repaired."""
    keep_alive(host)
    stop_where_sudo_asks(host)
    repair_understood(name=f"{REPAIR} is understood", value=os.environ.get(REPAIR))
    settings = plan.settings.weights
    models = needed(plan.models)
    wishes = [wish_of(Wanted(model, settings, plan.settings.hardware.reserve_disk_gib)) for model in models]
    disk_told(
        name="What the disks hold",
        images=references_of(recipes_of(plan.name)),
        revisions=[f"{wish.model.repository}@{wish.commit}" for wish in wishes if wish.commit is not None],
        home=settings.home,
        repair=asked_repair(),
    )
