"""The container images of the engines: built on the host from a recipe, or pulled by digest, and looked into."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.images.attestation import Needs
from modules.operations.attestation import image_attested
from modules.operations.image import image_present


@deploy("Image")
def image(plan: HostPlan) -> None:
    """Have the image of every service on the host; one that two services share is built once."""
    recipes = {service.recipe.model_dump_json(): service.recipe for service in plan.services}
    for recipe in host.loop(list(recipes.values())):
        image_present(
            name=f"Image {recipe.name}",
            recipe=recipe,
            registry=plan.settings.network.registry,
            limits=plan.settings.build,
        )
    for service in host.loop(list(plan.services)):
        image_attested(
            name=f"Image of {service.name} holds what {service.service.engine} needs",
            recipe=service.recipe,
            needs=Needs(native_fp4=service.engine.native_fp4, flags=service.flags),
        )
