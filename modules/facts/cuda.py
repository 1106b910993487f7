"""What this host's CUDA compiler can do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyinfra.api import StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.hostside import HOME
from modules.facts.program import AskProgram

PROBE = f"{HOME}/compile_probe.py"
PTXAS_PROBE = f"{HOME}/ptxas_probe.py"


@dataclass(frozen=True)
class ProbedFeature:
    """`wanted`: whether builds for a GB10 need it. `reason`: why it does not compile, None where it does."""

    wanted: bool
    reason: str | None


class CompileProbe(HostFact[Mapping[str, ProbedFeature]]):
    """The kept answer of the compile probe: feature → what came of it. Empty where this compiler was not probed yet.

    + architecture: for example 12.1f
    """

    @override
    def command(self, architecture: str) -> StringCommand:
        return AskProgram("python3", PROBE, ("--recall", "--architecture", architecture), absent="null")

    @override
    def parse(self, lines: list[str]) -> Mapping[str, ProbedFeature]:
        answer = json.loads(lines[0])
        if answer is None:
            return {}
        return {
            name: ProbedFeature(wanted=feature["wanted"], reason=feature["reason"])
            for name, feature in answer["features"].items()
        }


@dataclass(frozen=True)
class TritonPtxas:
    """`path`: what TRITON_PTXAS_PATH names, None where nothing. `reason`: why it does not assemble; None: it does."""

    path: str | None
    reason: str | None


class PtxasProbe(HostFact[TritonPtxas]):
    """Whether the ptxas that Triton uses on the host assembles for an architecture; tried anew each time.

    + architecture: for example 12.1f
    """

    @override
    def command(self, architecture: str) -> StringCommand:
        return AskProgram("python3", PTXAS_PROBE, ("--tell", "--architecture", architecture), absent="null")

    @override
    def parse(self, lines: list[str]) -> TritonPtxas:
        answer = json.loads(lines[-1])
        if answer is None:
            return TritonPtxas(None, "our programs are not on the host yet")
        return TritonPtxas(answer["path"], answer["reason"])
