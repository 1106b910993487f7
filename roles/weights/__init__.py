"""The weights of the served models, at a pinned commit, verified: fetched once, then passed from host to host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra import host
from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan, load_fleet, plan_for
from modules.operations.bundle_import import weights_loaded
from modules.operations.tools import TOOLS_THERE, tools_installed
from modules.operations.weights import Wanted, weights_fetched, weights_seen, weights_there
from modules.operations.weights_spread import (
    weights_offered,
    weights_shared,
    weights_sharing_ended,
    weights_taken,
)
from modules.spec.model import Model
from roles.weights.models import everywhere, needed


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    models = needed(plan.models)
    if models:
        yield TOOLS_THERE
    for model in models:
        yield weights_there(_wanted(plan, model))


def _wanted(plan: HostPlan, model: Model) -> Wanted:
    return Wanted(model, plan.settings.weights, plan.settings.hardware.reserve_disk_gib)


@deploy("Weights")
def weights(plan: HostPlan) -> None:
    """Have the model of every service on the host; one that two services or hosts share is fetched once."""
    wanted = needed(plan.models)
    models = {(model.repository, model.revision): model for model in wanted}
    if models:
        tools_installed(name="Hub client, peer-to-peer engine and benchmark")
    settings, bundle = plan.settings, plan.settings.network.bundle
    # In the same order on all hosts, so that those that want the same model meet at it.
    for key in host.loop(everywhere(plan_for(name) for name in load_fleet().hosts)):
        if key not in models:
            continue
        model, title = models[key], f"Weights {key[0]}"
        if bundle is not None:
            weights_loaded(
                name=f"{title} from {bundle}",
                model=model,
                weights=settings.weights,
                reserve_gib=settings.hardware.reserve_disk_gib,
                bundle=bundle,
            )
            continue
        here = _wanted(plan, model)
        weights_seen(name=title, wanted=here)
        weights_fetched(name=f"{title} from outside", wanted=here)
        # Where that failed, another host does it.
        weights_fetched(name=f"{title} from outside, by another host", wanted=here)
        weights_offered(name=f"{title} described for the other hosts", wanted=here)
        weights_shared(name=f"{title} given to the other hosts", wanted=here)
        weights_taken(name=f"{title} taken from the other hosts", wanted=here)
        weights_sharing_ended(name=f"{title} given no longer", wanted=here)
