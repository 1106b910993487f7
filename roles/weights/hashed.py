"""The weights of the served models, hashed again on demand."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.weights import Wanted
from modules.operations.weights_hashed import weights_hashed
from roles.weights.models import needed


@deploy("Weights")
def weights_verified(plan: HostPlan) -> None:
    """Read every file of every model on the host, and compare its hash with the one that the hub publishes."""
    for model in host.loop(needed(plan.models)):
        wanted = Wanted(model, plan.settings.weights, plan.settings.hardware.reserve_disk_gib)
        weights_hashed(name=f"Every file of {model.repository}", wanted=wanted)
