"""The container images of the engines: made once in a run, passed on to the other hosts, and looked into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra import host
from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan, ServicePlan
from modules.images.attestation import Needs
from modules.operations.attestation import attestation_there, image_attested, is_asked
from modules.operations.bundle_import import image_loaded, lock_filled
from modules.operations.image import image_present
from modules.operations.image_passing import images_offered, images_received, images_surveyed, offers_ended
from modules.operations.image_pruning import images_pruned
from modules.operations.image_survey import images_there, recipes_of


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks; without what a bundle has, which is asked only where there is one."""
    yield images_there(recipes_of(plan.name))
    for service in plan.services:
        if is_asked(service.recipe, _needs(service)):
            yield attestation_there(service.recipe)


def _needs(service: ServicePlan) -> Needs:
    return Needs(native_fp4=service.engine.native_fp4, flags=service.flags)


@deploy("Image")
def image(plan: HostPlan) -> None:
    """Have the image of every service on the host; first from a bundle, where the fleet file names one.

    One host of the run builds or pulls it, from a recipe or by digest, unless one has it; the others get it from there.
    """
    recipes = recipes_of(plan.name)
    if not recipes:
        return
    bundle = plan.settings.network.bundle
    if bundle is not None:
        lock_filled(name="What the bundle's tags stood for", recipes=recipes, bundle=bundle)
        for recipe in host.loop(recipes):
            image_loaded(name=f"Image {recipe.name} from {bundle}", recipe=recipe, bundle=bundle)
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
            needs=_needs(service),
        )


@deploy("Old images")
def prune(plan: HostPlan) -> None:
    """Remove what neither the fleet file nor a current or last good release needs; after gates have passed."""
    images_pruned(
        name="Images that nothing needs any more", recipes=recipes_of(plan.name), wanted=plan.settings.image.prune
    )
