"""The operating system, as far as the fleet file has wishes of it; none of them is needed to serve."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.system import system_settled


@deploy("System")
def system(plan: HostPlan) -> None:
    """Have earlyoom, memory for ssh, swapping, the GPU's clocks and the desktop as they are wished."""
    system_settled(name="Settings of the operating system", system=plan.settings.system)
