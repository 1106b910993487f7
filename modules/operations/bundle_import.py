"""Container images and weights from a bundle that lies on the host."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping

from pyinfra import host
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.bundle import BundleOnHost
from modules.facts.image import ImageOnHost
from modules.facts.weights import WeightsOnHost
from modules.fleet import load_fleet
from modules.fleet.lock import read_lock, record
from modules.images import build_of, image_reference, is_pinned, pinned
from modules.operations.job import Job, run_job
from modules.operations.require import unreadable
from modules.operations.weights import Wish, is_settled, locked_files, pinned_commit, record_commit
from modules.release import layout
from modules.spec.image import Recipe
from modules.spec.lock import Lock
from modules.spec.model import Model
from modules.spec.settings import Weights

_TIMEOUT_S = 3 * 3600
_GIB = 1024**3


def load_job(bundle: str, reference: str) -> Job:
    """The job that loads an image."""
    key = hashlib.sha256(f"{bundle}\0{reference}".encode()).hexdigest()[:12]
    command = (layout.PYTHON, str(layout.PROGRAMS / "load_image.py"), bundle, reference)
    return Job("image", key, f"image {reference}", command, _TIMEOUT_S)


def unresolved(recipes: Iterable[Recipe], lock: Lock) -> set[str]:
    """The images, bases among them, that are meant by a tag of which the lock does not know what it stands for."""
    loose = {recipe.base for recipe in recipes if recipe.base is not None and not is_pinned(recipe.base)}
    loose |= {recipe.reference for recipe in recipes if recipe.reference is not None and recipe.digest is None}
    return {tag for tag in loose if lock.digest(tag) is None}


@operation()
def lock_filled(recipes: list[Recipe], bundle: str) -> Generator[PyinfraCommand, None, None]:
    """Take into the fleet's lock what the tags of images stood for where the bundle was made: their names hang on it.

    + recipes: of the images that are wanted
    + bundle: directory on the host
    """
    loose = unresolved(recipes, read_lock(load_fleet().path))
    found = host.get_fact(BundleOnHost, directory=bundle) if loose else None
    known = {} if found is None else {tag: digest for tag, digest in found.lock.images.items() if tag in loose}
    if known:
        yield FunctionCommand(record_images, (known,), {})
    else:
        host.noop("the lock has all that the bundle knows")


def record_images(state: State, host: Host, images: Mapping[str, str]) -> bool:
    """Write down what tags stand for; also what pyinfra calls, which passes `state` and `host` by name."""
    record(load_fleet().path, images=images)
    return True


@operation()
def image_loaded(recipe: Recipe, bundle: str) -> Generator[PyinfraCommand, None, None]:
    """Have a recipe's image on the host, from a bundle: neither built nor pulled.

    + recipe: what is wanted
    + bundle: directory on the host
    """
    lock = read_lock(load_fleet().path)
    reference = image_reference(recipe, lock)
    found = host.get_fact(ImageOnHost, reference=reference)
    if found is None:
        yield from unreadable(f"the image {reference}")
        return
    built = None if recipe.reference is not None else build_of(pinned(recipe, lock)).digest
    if found.id is not None and found.recipe == (built or found.recipe):
        host.noop(f"image {reference} is there")
    else:
        yield from run_job(load_job(bundle, reference))


def import_job(wish: Wish, bundle: str) -> Job:
    """The job that brings a model's files from a bundle to their place."""
    model = wish.model
    words = [bundle, "--repository", model.repository, "--revision", model.revision, "--home", wish.weights.home]
    words += ["--commit", wish.commit] if wish.commit is not None else []
    words += [f"--include={pattern}" for pattern in model.include]
    words += [f"--exclude={pattern}" for pattern in model.exclude]
    words += ["--reserve-bytes", str(int(wish.reserve_gib * _GIB))]
    key = hashlib.sha256(f"{bundle}\0{wish.key}".encode()).hexdigest()[:12]
    command = (layout.PYTHON, str(layout.PROGRAMS / "import_weights.py"), *words)
    return Job("weights", key, f"weights {model.repository.split('/')[1]}", command, _TIMEOUT_S)


@operation()
def weights_loaded(
    model: Model, weights: Weights, reserve_gib: float, bundle: str
) -> Generator[PyinfraCommand, None, None]:
    """Have a model's files on the host, from a bundle, each verified against the hub's hash; the hub is not asked.

    + model: the model
    + weights: where it is kept
    + reserve_gib: free space that must remain on the disk
    + bundle: directory on the host
    """
    wish = Wish(model, weights, pinned_commit(model), reserve_gib)
    revision = wish.commit or model.revision
    state = host.get_fact(WeightsOnHost, repository=model.repository, revision=revision, home=weights.home)
    if state is None:
        yield from unreadable(f"the weights of {model.repository}")
        return
    if is_settled(wish, state):
        host.noop(f"{model.repository}@{state.commit} is there: {state.files} files, verified and untouched")
        return
    job = import_job(wish, bundle)
    yield from run_job(job)
    if not locked_files(wish):
        yield FunctionCommand(record_commit, (job, model), {})
