"""Image recipes: how the container image of an engine comes to be."""

from __future__ import annotations

from pydantic import Field, model_validator

from modules.spec.architecture import Architecture
from modules.spec.base import Commit, Digest, Strict


class GitPin(Strict):
    """A source tree at one commit. `dead`: why this commit can not be built; it is then refused."""

    repository: str
    commit: Commit


class DeadPin(Strict):
    """A published pin that can not be built, and what to use in its place."""

    commit: Commit
    reason: str


class Recipe(Strict):
    """How to get an image.

    Exactly one way: `reference` with `digest` (pulled), or `template` (a Dockerfile template in `roles/image/templates`,
    built on the host). `base`: the base image; `digest`s are pinned where known. `pins`: name → git tree at a commit.
    `packages`: name → exact version, installed in the image. `dead_pins`: refused, with the reason.
    `architecture`: what the GPU code is compiled for; null for CPU images.
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
            raise ValueError("a recipe is either built (template) or pulled (reference)")
        if self.template is not None and self.base is None:
            raise ValueError("a built image needs its base")
        for name, pin in self.pins.items():
            for dead in self.dead_pins:
                if pin.commit == dead.commit:
                    raise ValueError(f"pins.{name}.commit {pin.commit}: {dead.reason}")
        return self


class ImageOverride(Strict):
    """What a fleet file may change in a recipe."""

    recipe: str | None = None
    base: str | None = None
    architecture: Architecture | None = None
    pins: dict[str, GitPin] = {}
    packages: dict[str, str] = {}
    arguments: dict[str, str] = {}
    digest: Digest | None = None
