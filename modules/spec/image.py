"""Image recipes: how the container image of an engine comes to be."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from modules.spec.architecture import Architecture
from modules.spec.base import (
    NAMED,
    WRITTEN_OUT,
    AbsolutePath,
    Commit,
    Digest,
    Name,
    Strict,
    broken_rule,
    named_or_written_out,
)
from modules.spec.engine import FlagName

TEMPLATE_SUFFIX = ".Dockerfile.j2"
_IMAGE_NAME = re.compile(r"^[a-z0-9]+(-[a-z0-9]+)*$")


class GitPin(Strict):
    """A source tree at one commit."""

    repository: str
    commit: Commit


class DeadPin(Strict):
    """A published pin that can not be built, and what to use in its place."""

    commit: Commit
    reason: str


class Triple(Strict):
    """A published set of pins that were put together on purpose: they move together or not at all.

    `commits`: pin → commit. `base`: the image that they were published with; null: their publisher names none.
    `status`: `maintained` (its publishers still build it), `published` (they have moved on), `reported` (a user runs
    it) or `dead` (can not be built). `note`: what is known of it. `architecture`: what its publishers compile
    FlashInfer for, told only: what we compile for is the recipe's.
    """

    status: Literal["maintained", "published", "reported", "dead"]
    commits: dict[str, Commit] = Field(min_length=1)
    base: str | None = None
    architecture: Architecture | None = None
    note: str
    source: str


class Attest(Strict):
    """What is looked for in an image that is here, before an engine runs from it.

    `libraries`: shared libraries that must hold code for a GB10. `fp4_libraries`: those of which one must hold native
    block-scaled FP4 multiplications in code for the recipe's architecture. Both are patterns of whole paths in the
    image, in which `*` also stands for slashes; each must match. `ptxas`: assemblers that must know the recipe's
    architecture; Triton is given one by TRITON_PTXAS_PATH. `modules`: of Python, that must import. `help`: argv
    that prints the engine's flags. `choices`: flag → function in the image's Python (`module:name.name`) that gives the
    values that it takes, where its help does not.
    """

    libraries: tuple[AbsolutePath, ...] = ()
    fp4_libraries: tuple[AbsolutePath, ...] = ()
    ptxas: tuple[AbsolutePath, ...] = ()
    modules: tuple[str, ...] = ()
    help: tuple[str, ...] = ()
    choices: dict[FlagName, str] = {}

    @property
    def wanted(self) -> bool:
        """Whether there is anything to look for."""
        return any((self.libraries, self.fp4_libraries, self.ptxas, self.modules, self.help, self.choices))


class Recipe(Strict):
    """How to get an image.

    Exactly one way: `reference` (pulled; by `digest` where the catalog has it, else by the one that its tag resolved to
    into the lock; not at all where `present`: the host's docker has it under the id that `digest` then is, and no
    other host gets it), or `template` (a Dockerfile template in `roles/image/templates`, or with a slash in its name a
    path from the fleet file's folder; built on the host). `base`: the base image. `pins`: name → git tree at a commit;
    the first one is the program itself. `packages`: name → exact version, installed in the image; without pins the
    first one is the program. `triples`: published sets of pins, of which `pins` repeats one. `dead_pins`: refused, with
    the reason. `architecture`: what the GPU code is compiled for; null for CPU images. `size_gib`: of the image;
    null: not known, and not asked of the disk beforehand (only of an image that is pulled).
    `compiler_gib`: memory that one compiler of the build takes; 0: nothing is compiled. `build_minutes`: from and to,
    as others reported on a Spark.
    `attest`: what must be seen in the image itself.
    """

    template: str | None = None
    reference: str | None = None
    digest: Digest | None = None
    present: bool = False
    base: str | None = None
    architecture: Architecture | None = None
    pins: dict[str, GitPin] = {}
    packages: dict[str, str] = {}
    arguments: dict[str, str] = {}
    triples: dict[Name, Triple] = {}
    dead_pins: tuple[DeadPin, ...] = ()
    size_gib: float | None = Field(default=None, gt=0)
    # A CUDA compiler takes up to 8 GiB (flashinfer issue 3634, PR 3899).
    compiler_gib: float = Field(default=8.0, ge=0)
    build_minutes: tuple[float, float] | None = None
    attest: Attest = Attest()
    source: str
    verified: str = "unverified on hardware"

    @property
    def name(self) -> str:
        """What it is called: after its template, or its reference."""
        if self.template is None:
            return self.reference or ""
        return PurePosixPath(self.template).name.removesuffix(TEMPLATE_SUFFIX)

    @property
    def own(self) -> bool:
        """Whether its template lies beside the fleet file."""
        return self.template is not None and "/" in self.template

    @model_validator(mode="after")
    def _template_has_a_name(self) -> Recipe:
        if self.template is not None and not (self.template.endswith(TEMPLATE_SUFFIX) and _IMAGE_NAME.match(self.name)):
            message = f"a template's file is called NAME{TEMPLATE_SUFFIX}, with lower-case letters, digits and hyphens"
            raise broken_rule(message, "template")
        return self

    @model_validator(mode="after")
    def _one_way(self) -> Recipe:
        if (self.template is None) == (self.reference is None):
            raise broken_rule("a recipe is either built (template) or pulled (reference)")
        if self.template is not None and self.base is None:
            raise broken_rule("a built image needs its base", "base")
        if self.template is not None and self.size_gib is None:
            raise broken_rule("a built image needs its size, for the check of the disk", "size_gib")
        if self.template is not None and self.digest is not None:
            raise broken_rule("an image that is built has no digest beforehand", "digest")
        if self.present and (self.reference is None or self.digest is None):
            raise broken_rule("an image that is present is named by reference, and its id by digest", "present")
        if (self.attest.fp4_libraries or self.attest.ptxas) and self.architecture is None:
            raise broken_rule("what is looked for in the image is for an architecture: name it", "architecture")
        for name, pin in self.pins.items():
            for dead in self.dead_pins:
                if pin.commit == dead.commit:
                    raise broken_rule(f"{pin.commit} can not be built: {dead.reason}", "pins", name, "commit")
        return self

    @model_validator(mode="after")
    def _triples_are_of_these_pins(self) -> Recipe:
        dead = {pin.commit for pin in self.dead_pins}
        for name, triple in self.triples.items():
            if triple.commits.keys() != self.pins.keys():
                raise broken_rule(
                    f"it must have a commit of each of {', '.join(self.pins)}", "triples", name, "commits"
                )
            if (triple.status == "dead") != bool(dead & set(triple.commits.values())):
                raise broken_rule("a triple is dead when, and only when, it has a dead pin", "triples", name, "status")
        return self


RecipeChoice = Annotated[
    Annotated[str, Tag(NAMED)] | Annotated[Recipe, Tag(WRITTEN_OUT)], Discriminator(named_or_written_out)
]


class PinOverride(Strict):
    """Another commit of a recipe's source tree, and of another repository if need be."""

    repository: str | None = None
    commit: Commit


class ImageOverride(Strict):
    """What a fleet file may change in a recipe. `recipe`: another one than the engine's, by its name or written out.

    `triple`: another one of the recipe's published sets of pins, with its base; `pins` and `base` are laid over it.
    """

    recipe: RecipeChoice | None = None
    triple: str | None = None
    base: str | None = None
    architecture: Architecture | None = None
    pins: dict[str, PinOverride] = {}
    packages: dict[str, str] = {}
    arguments: dict[str, str] = {}
    digest: Digest | None = None
