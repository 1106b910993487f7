"""Names of images: as docker on a host knows them, and where they are pulled from."""

from __future__ import annotations

from modules.images.build import build_of
from modules.spec.image import Recipe
from modules.spec.lock import Lock


def image_reference(recipe: Recipe, lock: Lock) -> str:
    """The name by which a recipe's image is run, on the host that made it and on those that got it from there.

    A built one's tag is made from its content, to which the base's digest belongs where the lock knows it. A pulled
    one's is made from its digest: the recipe's, else the lock's; while neither has one, it is the tag itself. One that
    is present is run by its id.
    """
    if recipe.reference is None:
        return build_of(pinned(recipe, lock)).tag
    if recipe.present and recipe.digest is not None:
        return recipe.digest
    digest = pinned_digest(recipe, lock)
    return recipe.reference if digest is None else f"{own_repository(recipe.reference)}:{digest.partition(':')[2][:12]}"


def pinned_digest(recipe: Recipe, lock: Lock) -> str | None:
    """The digest by which a recipe's image is pulled; None for one that is built, or whose tag was not resolved yet."""
    return None if recipe.reference is None else recipe.digest or lock.digest(recipe.reference)


def image_key(recipe: Recipe) -> str:
    """Equal for recipes of one and the same image, and the same before and after tags were resolved."""
    return build_of(recipe).tag if recipe.reference is None else f"{recipe.reference}@{recipe.digest or ''}"


def own_repository(reference: str) -> str:
    """What a pulled image is called on hosts, without its tag: `nvcr.io/nvidia/vllm:26.05` is `tinderbox/vllm`."""
    return f"tinderbox/{_without_tag(reference.partition('@')[0]).rpartition('/')[2]}"


def pinned(recipe: Recipe, lock: Lock) -> Recipe:
    """The recipe on the very base that its tag resolved to, where the lock knows which."""
    if recipe.base is None or is_pinned(recipe.base):
        return recipe
    return recipe.model_copy(update={"base": pull_reference(recipe.base, lock.digest(recipe.base))})


def is_pinned(reference: str) -> bool:
    """Whether it can mean one image only."""
    return "@" in reference


def pull_reference(reference: str, digest: str | None) -> str:
    """`name:tag` as it is pulled by digest. Docker forgets a tag that stands beside a digest."""
    return reference if digest is None else f"{_without_tag(reference)}@{digest}"


def base_reference(base: str, registry: str | None) -> str:
    """Where a base image is pulled from: the site's registry holds it under its own name, without the first host."""
    if registry is None:
        return base
    first, slash, rest = base.partition("/")
    is_host = slash and ("." in first or ":" in first or first == "localhost")
    return f"{registry}/{rest if is_host else base}"


def _without_tag(reference: str) -> str:
    name, colon, tag = reference.rpartition(":")
    return name if colon and "/" not in tag else reference
