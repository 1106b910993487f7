"""Room on the disk: revisions of models that no release needs go, where the fleet file says so."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.weights import Wanted, wish_of
from modules.operations.weights_pruned import weights_pruned
from roles.weights.models import needed


@deploy("Weights")
def clean_weights(plan: HostPlan) -> None:
    """Remove them, if `weights.remove_unneeded` is set; after the stages that put a release in force."""
    settings = plan.settings.weights
    if not settings.remove_unneeded:
        return
    models = needed(plan.models)
    wishes = [wish_of(Wanted(model, settings, plan.settings.hardware.reserve_disk_gib)) for model in models]
    # A model whose commit is not known yet is not on this host either.
    keep = [f"{wish.model.repository}@{wish.commit}" for wish in wishes if wish.commit is not None]
    weights_pruned(name="Models that no release needs", home=settings.home, keep=keep)
