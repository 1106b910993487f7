"""What a run knows of its hosts' images, and what it decides by that: who makes an image, and who gets it from whom."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pyinfra.api import Host, State

from modules.facts.image import ImageOnHost, ImageState
from modules.facts.image_survey import HostImages, ImagesOnHost
from modules.facts.survey import Question
from modules.fleet import load_fleet, plan_for
from modules.fleet.lock import read_lock
from modules.images import build_of, image_key, image_reference, pinned, pinned_digest
from modules.images.passing import Passing, common_builder, passing, sharing
from modules.spec.image import Recipe


@dataclass(frozen=True)
class Offered:
    """An image that another host offers. `name`: there and here; `digest`: of its manifest there; `id`: the image's."""

    name: str
    digest: str
    id: str


@dataclass
class RunImages:
    """Of one stage of a run: what is found while it is prepared may be outdated when it is executed.

    `surveys`: by host. `passings`: by image and builder, once decided: a host that fails later does not make another
    one begin a long build. `access`: by builder, what receivers need of its registry, keys among it. `offers`: by
    builder and image.
    """

    surveys: dict[str, HostImages | None] = field(default_factory=dict)
    passings: dict[tuple[str, str | None], Passing] = field(default_factory=dict)
    access: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    offers: dict[tuple[str, str], Offered] = field(default_factory=dict)
    locks: dict[str, threading.Lock] = field(default_factory=dict)


_runs: WeakKeyDictionary[State, dict[Any, RunImages]] = WeakKeyDictionary()


def run_of(state: State) -> RunImages:
    """What is known in this stage of this run."""
    return _runs.setdefault(state, {}).setdefault(state.current_stage, RunImages())


def recipes_of(name: str) -> list[Recipe]:
    """The recipes of a host's images, each once."""
    return list({image_key(service.recipe): service.recipe for service in plan_for(name).services}.values())


def references_of(recipes: Iterable[Recipe]) -> list[str]:
    """The names of images, without those whose tags are yet to be resolved."""
    lock = read_lock(load_fleet().path)
    named = [recipe for recipe in recipes if recipe.reference is None or pinned_digest(recipe, lock) is not None]
    return [image_reference(recipe, lock) for recipe in named]


def images_there(recipes: Iterable[Recipe]) -> Question[HostImages]:
    """What a host has of all its images."""
    return Question(ImagesOnHost, {"references": references_of(recipes)})


def surveyed(host: Host) -> HostImages | None:
    """What a host of the run has, asked once in each stage; None: it did not answer, and has failed by that."""
    run = run_of(host.state)
    # Other hosts may ask for it at the same time.
    with run.locks.setdefault(host.name, threading.Lock()):
        if host.name not in run.surveys:
            run.surveys[host.name] = images_there(recipes_of(host.name)).of(host)
        return run.surveys[host.name]


def image_on(host: Host, reference: str) -> ImageState | None:
    """One image as this stage of the run has found it, or asked for here; None: the host did not answer."""
    found = run_of(host.state).surveys.get(host.name) if in_run(host) else None
    if found is not None and reference in found.images:
        return found.images[reference]
    return host.get_fact(ImageOnHost, reference=reference)


def in_run(host: Host) -> bool:
    """Whether the host is one of a run's, among which images are passed on."""
    return getattr(host, "state", None) is not None


def has_image(found: HostImages, recipe: Recipe) -> bool:
    """Whether a host has a recipe's image."""
    lock = read_lock(load_fleet().path)
    state = found.images.get(image_reference(recipe, lock), ImageState(None, None))
    if recipe.reference is None:
        return state.id is not None and state.recipe == build_of(pinned(recipe, lock)).digest
    return state.id is not None and pinned_digest(recipe, lock) is not None


def passing_for(host: Host, recipe: Recipe) -> Passing:
    """Who makes a recipe's image in this run, and who gets it from there; decided once, for all hosts alike."""
    if not in_run(host) or recipe.present:
        return Passing(host.name, ())
    run, key = run_of(host.state), image_key(recipe)
    hosts = load_fleet().hosts
    named = {name: other.settings.image.builder for name, other in hosts.items()}
    group = (key, common_builder(host.name, named))
    if group not in run.passings:
        active = {other.name: other for other in host.state.inventory.get_active_hosts()}
        takers = [name for name in hosts if name in active and key in map(image_key, recipes_of(name))]
        found = {name: surveyed(active[name]) for name in sharing(host.name, takers, named)}
        has = {name: has_image(survey, recipe) for name, survey in found.items() if survey is not None}
        run.passings.setdefault(group, passing(has or {host.name: False}, group[1]))
    return run.passings[group]
