"""Image recipes: how the container image of an engine comes to be."""

from __future__ import annotations

from pydantic import Field, model_validator

from modules.spec.architecture import Architecture
from modules.spec.base import Commit, Digest, Strict, broken_rule


class GitPin(Strict):
    """A source tree at one commit."""

    repository: str
    commit: Commit


class DeadPin(Strict):
    """A published pin that can not be built, and what to use in its place."""

    commit: Commit
    reason: str


class Recipe(Strict):
    """How to get an image.

    Exactly one way: `reference` (pulled; by `digest` where the catalog has it, else by the one that its tag resolved to
    into the lock), or `template` (a Dockerfile template in `roles/image/templates`, built on the host). `base`: the
    base image. `pins`: name → git tree at a commit. `packages`: name → exact version, installed in the image.
    `dead_pins`: refused, with the reason. `architecture`: what the GPU code is compiled for; null for CPU images.
    `size_gib`: of the image. `build_minutes`: from and to, as others reported on a Spark.
    """

    template: str | None = None
    reference: str | None = None
    digest: Digest | None = None
    base: str | None = None
    architecture: Architecture | None = None
    pins: dict[str, GitPin] = {}
    packages: dict[str, str] = {}
    arguments: dict[str, str] = {}
    dead_pins: tuple[DeadPin, ...] = ()
    size_gib: float = Field(gt=0)
    build_minutes: tuple[float, float] | None = None
    source: str
    verified: str = "unverified on hardware"

    @model_validator(mode="after")
    def _one_way(self) -> Recipe:
        if (self.template is None) == (self.reference is None):
            raise broken_rule("a recipe is either built (template) or pulled (reference)")
        if self.template is not None and self.base is None:
            raise broken_rule("a built image needs its base", "base")
        if self.template is not None and self.digest is not None:
            raise broken_rule("an image that is built has no digest beforehand", "digest")
        for name, pin in self.pins.items():
            for dead in self.dead_pins:
                if pin.commit == dead.commit:
                    raise broken_rule(f"{pin.commit} can not be built: {dead.reason}", "pins", name, "commit")
        return self


class PinOverride(Strict):
    """Another commit of a recipe's source tree, and of another repository if need be."""

    repository: str | None = None
    commit: Commit


class ImageOverride(Strict):
    """What a fleet file may change in a recipe. `recipe`: another one than the engine's."""

    recipe: str | None = None
    base: str | None = None
    architecture: Architecture | None = None
    pins: dict[str, PinOverride] = {}
    packages: dict[str, str] = {}
    arguments: dict[str, str] = {}
    digest: Digest | None = None
