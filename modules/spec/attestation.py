"""What was seen in a container image: the answer of `attest_image.py` on a host."""

from __future__ import annotations

from typing import Literal

from modules.spec.architecture import Architecture
from modules.spec.base import Strict
from modules.spec.image import Attest


class Asked(Attest):
    """What was looked for, and for which architecture."""

    architecture: Architecture | None = None


class Tool(Strict):
    """The cuobjdump that looked. `origin`: the image's own, or that of the host's toolkit."""

    path: str
    origin: str
    version: str | None


class Fp4Evidence(Strict):
    """The first FP4 multiplication for one target: the instruction, and the function that it stands in."""

    opcode: str
    function: str | None


class LibraryCode(Strict):
    """A library's code for GPUs.

    `listed`: targets by the names of its pieces, which prove nothing. `machine`, `ptx`: target → pieces, as the pieces
    themselves say. `searched`: whether FP4 was looked for. `fp4`: target → evidence. `trouble`: why it was not read to
    its end; what was seen until then still holds.
    """

    path: str
    size: int
    listed: tuple[str, ...] = ()
    machine: dict[str, int] = {}
    ptx: dict[str, int] = {}
    searched: bool = False
    fp4: dict[str, Fp4Evidence] = {}
    trouble: str | None = None


class ProbedFeature(Strict):
    """A PTX feature. `wanted`: whether a GB10 has it. `reason`: why it does not compile."""

    compiles: bool
    wanted: bool
    reason: str | None = None


class Compiler(Strict):
    """What an image's own nvcc and ptxas compile for an architecture.

    `origin`: `build` (told by the build, which tried its compiler), or `image` (tried in the image that is here).
    `toolkit`: sha256 over the compiler's parts. `features`: by name.
    """

    origin: Literal["build", "image"]
    architecture: str
    toolkit: str
    features: dict[str, ProbedFeature]

    @property
    def lacking(self) -> dict[str, str]:
        """Wanted features that it does not compile: name → reason."""
        return {
            name: of.reason or "it does not compile"
            for name, of in self.features.items()
            if of.wanted and not of.compiles
        }


class ImportedModule(Strict):
    """A Python module. `error`: why it does not import."""

    version: str | None = None
    error: str | None = None


class Attestation(Strict):
    """What was seen in an image.

    `image`: its id. `unmatched`: patterns that fit no file. `flags`: those that its help names; null: it printed none,
    see `trouble`. `choices`: flag → values that it takes, where known. `provenance`: what the image tells of its
    origin. `compiler`: null where the image has none. `ptxas`: path → why it does not assemble for the architecture;
    null: it does. `trouble`: part → why it could not be looked at. `examined_at`: UTC. `seconds`: how long it took.
    """

    reference: str
    image: str
    asked: Asked
    tool: Tool | None = None
    libraries: tuple[LibraryCode, ...] = ()
    unmatched: tuple[str, ...] = ()
    modules: dict[str, ImportedModule] = {}
    flags: tuple[str, ...] | None = None
    choices: dict[str, tuple[str, ...]] = {}
    provenance: dict[str, object] | None = None
    compiler: Compiler | None = None
    ptxas: dict[str, str | None] = {}
    trouble: dict[str, str] = {}
    examined_at: str
    seconds: float
