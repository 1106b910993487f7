"""The gate of the network between Sparks."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.fabric_gate import fabric_looked_at, fabric_measured, fabric_served, fabric_served_no_longer


@deploy("Fabric gate")
def fabric_gate(plan: HostPlan) -> None:
    """Measure every half of every cable, and NCCL over all; fail the hosts whose links are too slow."""
    fabric = plan.settings.fabric
    if fabric is None:
        return
    name, simulated = plan.name, plan.simulated
    fabric_looked_at(name="Cables", fabric=fabric, member=name, simulated=simulated)
    fabric_served(name="Waiting ends", fabric=fabric, member=name)
    fabric_measured(name="Bandwidth", fabric=fabric, member=name, _serial=True)
    fabric_served_no_longer(name="Waiting ends stopped", fabric=fabric, member=name)
