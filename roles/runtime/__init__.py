"""What runs containers with a GPU: docker and NVIDIA's container toolkit."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.apt import apt_package
from modules.operations.apt_source import source_of
from modules.operations.docker_daemon import docker_ready

TOOLKIT = "nvidia-container-toolkit"


@deploy("Runtime")
def runtime(plan: HostPlan) -> None:
    """Have the toolkit at its version, and dockerd running with NVIDIA's runtime and rotated logs."""
    wish, network = plan.settings.runtime, plan.settings.network
    apt_package(
        name=f"Package {TOOLKIT} at {wish.container_toolkit_version}",
        package=TOOLKIT,
        version=wish.container_toolkit_version,
        source=source_of("container-toolkit", network.apt.container_toolkit),
    )
    docker_ready(
        name="Docker with NVIDIA's runtime and log rotation",
        wish=wish,
        network=network,
        ca_bundle=plan.ca_bundle_path.read_text() if plan.ca_bundle_path is not None else None,
    )
