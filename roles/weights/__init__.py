"""The weights of the served models, at a pinned commit, each file verified."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.bundle_import import weights_loaded
from modules.operations.tools import tools_installed
from modules.operations.weights import weights_present
from roles.weights.models import needed


@deploy("Weights")
def weights(plan: HostPlan) -> None:
    """Have the model of every service on the host; a model that two services share is fetched once."""
    models = needed(service.model for service in plan.services)
    if not models:
        return
    tools_installed(name="Hub client and benchmark")
    bundle = plan.settings.network.bundle
    if bundle is not None:
        for model in host.loop(models):
            weights_loaded(
                name=f"Weights {model.repository} from {bundle}",
                model=model,
                weights=plan.settings.weights,
                reserve_gib=plan.settings.hardware.reserve_disk_gib,
                bundle=bundle,
            )
        return
    for model in host.loop(models):
        weights_present(
            name=f"Weights {model.repository}",
            model=model,
            weights=plan.settings.weights,
            reserve_gib=plan.settings.hardware.reserve_disk_gib,
        )
