"""Container images on a host."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, QuoteString, State, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.job import JobState
from modules.fleet import load_fleet
from modules.fleet.lock import read_lock, record
from modules.images import (
    Build,
    base_reference,
    build_of,
    image_reference,
    is_pinned,
    own_repository,
    pinned,
    pinned_digest,
    pull_reference,
)
from modules.operations.differences import differs
from modules.operations.image_survey import image_on, passing_for
from modules.operations.job import Job, run_job
from modules.operations.require import foreseen, unreadable
from modules.release import layout
from modules.spec.image import Recipe
from modules.spec.settings import BuildLimits

IMAGES = str(layout.STATE / "images")
_TIMEOUT_S = 6 * 3600


def build_request(build: Build, registry: str | None, recipe: Recipe, limits: BuildLimits) -> str:
    """What `build_image.py` reads."""
    return json.dumps(
        {
            "tag": build.tag,
            "digest": build.digest,
            "base": base_reference(build.base, registry),
            "files": build.files,
            "size_gib": recipe.size_gib,
            "build_minutes": recipe.build_minutes,
            "compiler_gib": recipe.compiler_gib,
            "keep_gib": limits.keep_gib,
            "stop_services": limits.stop_engines,
        }
    )


def build_job(build: Build) -> Job:
    """The job that builds."""
    command = (layout.PYTHON, str(layout.PROGRAMS / "build_image.py"), f"{_folder(build)}/request.json")
    return Job("image", build.key, f"image {build.name}", command, _TIMEOUT_S, "build")


def pull_job(reference: str) -> Job:
    """The job that pulls, and gives the image the name by which it is run."""
    key = hashlib.sha256(reference.encode()).hexdigest()[:12]
    command = (layout.PYTHON, str(layout.PROGRAMS / "pull_image.py"), reference, own_repository(reference))
    return Job("image", key, f"image {reference}", command, _TIMEOUT_S, "build")


def base_job(reference: str) -> Job:
    """The job that has a base image here, and tells its digest."""
    key = hashlib.sha256(reference.encode()).hexdigest()[:12]
    command = (layout.PYTHON, str(layout.PROGRAMS / "pull_image.py"), reference)
    return Job("base", key, f"base image {reference}", command, _TIMEOUT_S, "build")


def _folder(build: Build) -> str:
    return f"{IMAGES}/{build.key}"


def record_digest(state: State, host: Host, job: Job, reference: str, *, own: bool = False) -> bool:
    """Keep what a tag stood for in the fleet's lock, so that every run and every host gets the same image.

    `own`: whether it may be an image that no registry has.
    """
    status = host.get_fact(JobState, job=job.name, key=job.key)
    digest = status.result.get("digest") if status is not None and status.result is not None else None
    if not isinstance(digest, str):
        if own:
            host.log(f"{reference} was made on this host and is in no registry: what is built on it stays unpinned")
            return True
        host.log(f"{job.title}: the registry gave it no digest, so it can not be pinned", log_func=logger.error)
        return False
    wanted = record(load_fleet().path, images={reference: digest}).digest(reference)
    if wanted == digest:
        return True
    host.log(
        f"{reference} moved from {wanted} to {digest} during this run; the lock keeps the former: run again",
        log_func=logger.error,
    )
    return False


@operation()
def image_present(recipe: Recipe, registry: str | None, limits: BuildLimits) -> Generator[PyinfraCommand, None, None]:
    """Have a recipe's image on the host that makes it for the run: built there as a job, or pulled.

    + recipe: what is wanted
    + registry: `host[:port]` of a registry of the site's that holds base images, or None
    + limits: what a build may take of the host
    """
    lock = read_lock(load_fleet().path)
    reference = image_reference(recipe, lock)
    found = image_on(host, reference)
    if found is None:
        yield from unreadable(f"the image {reference}")
    elif (builder := passing_for(host, recipe).builder) != host.name:
        host.noop(f"image {reference} is there, or comes from {builder}")
    elif recipe.present:
        yield from _must_be_there(recipe, here=found.id is not None)
    elif recipe.reference is not None:
        yield from _pulled(recipe.reference, pinned_digest(recipe, lock), here=found.id is not None)
    elif found.recipe == build_of(pinned(recipe, lock)).digest:
        host.noop(f"image {reference} is there")
    else:
        differs(f"image {reference}", "is not there" if found.id is None else "was made by another recipe")
        yield from _based(pinned(recipe, lock), registry)
        # Its digest is known by now, and with it the image's name.
        yield from _built(build_of(pinned(recipe, read_lock(load_fleet().path))), registry, recipe, limits)


def _based(recipe: Recipe, registry: str | None) -> Generator[PyinfraCommand, None, None]:
    if recipe.base is None or is_pinned(recipe.base):
        return
    job = base_job(base_reference(recipe.base, registry))
    yield from run_job(job)
    yield FunctionCommand(record_digest, (job, recipe.base), {"own": True})


def _built(
    build: Build, registry: str | None, recipe: Recipe, limits: BuildLimits
) -> Generator[PyinfraCommand, None, None]:
    folder = QuoteString(_folder(build))
    # One round trip; the context lies there afterwards, for a build by hand.
    yield StringCommand(
        *("mkdir -p", folder, "&& cat >", StringCommand(folder, "/request.json.new", _separator="")),
        *("&& mv", StringCommand(folder, "/request.json.new", _separator="")),
        StringCommand(folder, "/request.json", _separator=""),
        _stdin=build_request(build, registry, recipe, limits),
    )
    yield from run_job(build_job(build))


def _must_be_there(recipe: Recipe, *, here: bool) -> Generator[PyinfraCommand, None, None]:
    if here:
        host.noop(f"image {recipe.reference} is there")
        return
    yield foreseen(
        f"{host.name}: docker has no image {recipe.digest} ({recipe.reference}), which the fleet file says is present. "
        "Load it (docker load), or name another under image.recipe. What runs was left running."
    )


def _pulled(wish: str, digest: str | None, *, here: bool) -> Generator[PyinfraCommand, None, None]:
    if here and digest is not None:
        host.noop(f"image {pull_reference(wish, digest)} is there")
        return
    differs(f"image {wish}", "is not there" if not here else "is not pinned")
    job = pull_job(pull_reference(wish, digest))
    yield from run_job(job)
    if digest is None:
        yield FunctionCommand(record_digest, (job, wish), {})
