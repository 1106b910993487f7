"""The container images of the engines: made once in a run, passed on to the other hosts, and looked into."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.images.attestation import Needs
from modules.operations.attestation import image_attested
from modules.operations.image import image_present
from modules.operations.image_passing import images_offered, images_received, images_surveyed, offers_ended
from modules.operations.image_pruning import images_pruned
from modules.operations.image_survey import recipes_of


@deploy("Image")
def image(plan: HostPlan) -> None:
    """Have the image of every service on the host.

    One host of the run builds or pulls it, from a recipe or by digest, unless one has it; the others get it from there.
    """
    recipes = recipes_of(plan.name)
    if not recipes:
        return
    images_surveyed(name="Images that are there")
    for recipe in host.loop(recipes):
        image_present(
            name=f"Image {recipe.name}",
            recipe=recipe,
            registry=plan.settings.network.registry,
            limits=plan.settings.build,
        )
    images_offered(
        name="Images for other hosts",
        recipes=recipes,
        port=plan.settings.image.port,
        peer_address=plan.settings.network.peer_address,
    )
    images_received(name="Images from another host", recipes=recipes)
    offers_ended(name="Nothing is offered any more")
    for service in host.loop(list(plan.services)):
        image_attested(
            name=f"Image of {service.name} holds what {service.service.engine} needs",
            recipe=service.recipe,
            needs=Needs(native_fp4=service.engine.native_fp4, flags=service.flags),
        )


@deploy("Old images")
def prune(plan: HostPlan) -> None:
    """Remove what neither the fleet file nor a current or last good release needs; after gates have passed."""
    images_pruned(
        name="Images that nothing needs any more", recipes=recipes_of(plan.name), wanted=plan.settings.image.prune
    )
