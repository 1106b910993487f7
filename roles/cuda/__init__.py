"""The CUDA toolkit: the package, its settings for login shells, and the proof that it compiles FP4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan
from modules.operations.apt import apt_package, package_there
from modules.operations.apt_source import source_of
from modules.operations.cuda import (
    PROFILE_THERE,
    compile_probe_passed,
    compile_probe_there,
    profile_settled,
    triton_ptxas_passed,
    triton_ptxas_there,
)


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    wish = plan.settings.cuda
    yield package_there(wish.package, source_of("cuda", plan.settings.network.apt.cuda))
    yield PROFILE_THERE
    yield compile_probe_there(wish.architecture)
    yield triton_ptxas_there(wish.architecture)


@deploy("CUDA")
def cuda(plan: HostPlan) -> None:
    """Have the toolkit at its version, and refuse a host whose nvcc can not build for the architecture."""
    wish = plan.settings.cuda
    apt_package(
        name=f"Package {wish.package} at {wish.version}",
        package=wish.package,
        version=wish.version,
        source=source_of("cuda", plan.settings.network.apt.cuda),
    )
    profile_settled(name="Toolkit in login shells")
    compile_probe_passed(name=f"Native FP4 for {wish.architecture} compiles", architecture=wish.architecture)
    triton_ptxas_passed(name=f"Triton's ptxas knows {wish.architecture}", architecture=wish.architecture)
