"""Image recipes: how the container image of an engine comes to be."""

from __future__ import annotations

from pydantic import Field, model_validator

from modules.spec.architecture import Architecture
from modules.spec.base import AbsolutePath, Commit, Digest, Strict, broken_rule
from modules.spec.engine import FlagName


class GitPin(Strict):
    """A source tree at one commit."""

    repository: str
    commit: Commit


class DeadPin(Strict):
    """A published pin that can not be built, and what to use in its place."""

    commit: Commit
    reason: str


class Attest(Strict):
    """What is looked for in an image that is here, before an engine runs from it.

    `libraries`: shared libraries that must hold code for a GB10. `fp4_libraries`: those of which one must hold native
    block-scaled FP4 multiplications in code for the recipe's architecture. Both are patterns of whole paths in the
    image, in which `*` also stands for slashes; each must match. `modules`: of Python, that must import. `help`: argv
    that prints the engine's flags. `choices`: flag → function in the image's Python (`module:name.name`) that gives the
    values that it takes, where its help does not.
    """

    libraries: tuple[AbsolutePath, ...] = ()
    fp4_libraries: tuple[AbsolutePath, ...] = ()
    modules: tuple[str, ...] = ()
    help: tuple[str, ...] = ()
    choices: dict[FlagName, str] = {}

    @property
    def wanted(self) -> bool:
        """Whether there is anything to look for."""
        return any((self.libraries, self.fp4_libraries, self.modules, self.help, self.choices))


class Recipe(Strict):
    """How to get an image.

    Exactly one way: `reference` (pulled; by `digest` where the catalog has it, else by the one that its tag resolved to
    into the lock), or `template` (a Dockerfile template in `roles/image/templates`, built on the host). `base`: the
    base image. `pins`: name → git tree at a commit. `packages`: name → exact version, installed in the image.
    `dead_pins`: refused, with the reason. `architecture`: what the GPU code is compiled for; null for CPU images.
    `size_gib`: of the image. `build_minutes`: from and to, as others reported on a Spark. `attest`: what must be seen
    in the image itself.
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
    attest: Attest = Attest()
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
        if self.attest.fp4_libraries and self.architecture is None:
            raise broken_rule("FP4 code is looked for in code for an architecture: name it", "architecture")
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
