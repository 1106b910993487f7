"""Judgement of disk space: what is still to come must fit, with the reserve left over."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modules.facts.machine_state import Disk, MachineState, StoredImage
from modules.fleet import HostPlan
from modules.images import image_reference
from modules.release.layout import model_directory
from modules.spec.image import Recipe
from modules.spec.lock import Lock
from modules.spec.model import Model
from roles.preflight.finding import Finding, found

_GIB = 2**30


@dataclass(frozen=True)
class Need:
    """Something that is still to come, in GiB, and the path whose file system it goes to.

    `model`, `recipe`: which of both it is.
    """

    what: str
    gib: float
    path: str
    model: Model | None = None
    recipe: Recipe | None = None


def model_key(model: Model) -> str:
    """What a model's presence is asked by: two services may want two revisions of one model."""
    return f"{model.repository}@{model.revision}"


def models_asked(plan: HostPlan) -> dict[str, tuple[str, str, str | None]]:
    """Key → directory in the weights' home, revision and the one file that is served, for the `Machine` fact."""
    home = plan.settings.weights.home
    return {
        model_key(model): (model_directory(home, model.repository), model.revision, model.file) for model in plan.models
    }


def judge_space(state: MachineState, plan: HostPlan, lock: Lock) -> Iterator[Finding]:
    """One finding for every file system that is too small; what is on the host already needs no space again."""
    reserve = plan.settings.hardware.reserve_disk_gib
    for disk, here in by_disk(state, needs(state, plan, lock)):
        free, wanted = disk.free / _GIB, sum(need.gib for need in here) + reserve
        # The reserve alone is no reason to stop a host that already has everything.
        if not here or free >= wanted:
            continue
        parts = " + ".join([f"{need.gib:.1f} for {need.what}" for need in here] + [f"{reserve:.1f} in reserve"])
        yield found(
            "disk-space",
            f"disk space on {disk.mount}",
            f"{free:.1f} GiB free",
            f"{wanted:.1f} GiB ({parts})",
            f"make {wanted - free:.1f} GiB free (`docker system df`, `hf cache ls` and "
            f"`sudo du -xh {disk.mount} | sort -h` show what takes it), or put settings.weights.home on another disk",
        )


def judge_caches(state: MachineState) -> Iterator[Finding]:
    """Files in somebody's Hugging Face cache that are not theirs."""
    for cache in state.strange_files:
        command = f"sudo chown -R --reference={shlex.quote(cache.home)} {shlex.quote(cache.path)}"
        yield found(
            "cache-owner",
            "Hugging Face cache",
            f"{cache.strange} files and folders in {cache.path} do not belong to the owner of {cache.home}",
            remedy=f"`{command}`",
            commands=(command,),
        )


def needs(state: MachineState, plan: HostPlan, lock: Lock) -> list[Need]:
    """What of weights and images is still to come."""
    return [*_weights(state, plan), *_images(state, plan, lock)]


def by_disk(state: MachineState, wanted: Iterable[Need]) -> Iterator[tuple[Disk, list[Need]]]:
    """Each file system with what goes to it."""
    every = list(wanted)
    # One that is in use has another figure each time it is asked for, so its device tells it apart.
    for device, disk in {disk.device: disk for disk in state.disks.values()}.items():
        yield disk, [need for need in every if state.disks[need.path].device == device]


def _weights(state: MachineState, plan: HostPlan) -> Iterator[Need]:
    wanted = {model_key(model): model for model in plan.models}
    for key, model in wanted.items():
        if model.size_gib is None:
            continue  # told once the hub was asked, before a byte is fetched
        stored = state.models[key]
        missing = model.size_gib - (stored.snapshot + stored.pieces) / _GIB
        # size_gib is approximate: a snapshot that is all but there is there, and hashes will tell.
        if missing > model.size_gib * 0.02:
            yield Need(f"the weights of {model.repository}", missing, plan.settings.weights.home, model=model)


def _images(state: MachineState, plan: HostPlan, lock: Lock) -> Iterator[Need]:
    sizes = {image_name(service.recipe, lock): service.recipe for service in plan.services}
    for name, recipe in sizes.items():
        if recipe.size_gib is not None and not has_image(state, name, recipe):
            yield Need(f"image {name}", recipe.size_gib, state.docker_root, recipe=recipe)


def image_name(recipe: Recipe, lock: Lock) -> str:
    """What docker calls it here."""
    return image_reference(recipe, lock) if recipe.reference is None else recipe.reference


def has_image(state: MachineState, name: str, recipe: Recipe) -> bool:
    """Whether the host has it."""
    return any(_is_of(image, name, recipe) for image in state.images)


def _is_of(image: StoredImage, name: str, recipe: Recipe) -> bool:
    if recipe.digest is not None:
        return image.digest == recipe.digest
    return f"{image.repository}:{image.tag}" == name
