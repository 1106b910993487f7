"""What runs containers with a GPU: docker and NVIDIA's container toolkit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan
from modules.operations.apt import apt_package, package_there
from modules.operations.apt_source import source_of
from modules.operations.docker_daemon import daemon_there, docker_ready

TOOLKIT = "nvidia-container-toolkit"


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    network = plan.settings.network
    yield package_there(TOOLKIT, source_of("container-toolkit", network.apt.container_toolkit))
    yield daemon_there(network, plan.ca_bundle)


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
        ca_bundle=plan.ca_bundle,
    )
