"""The CUDA toolkit: the package, its settings for login shells, and the proof that it compiles FP4."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.apt import apt_package
from modules.operations.apt_source import source_of
from modules.operations.cuda import compile_probe_passed, profile_settled, triton_ptxas_passed


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
