"""What a host has, exported for hosts that reach nothing outside."""

from __future__ import annotations

from pyinfra.api import deploy

from modules.fleet import HostPlan
from modules.operations.bundle_export import bundle_exported
from roles.weights.models import needed


@deploy("Bundle")
def bundle(plan: HostPlan) -> None:
    """Export images, weights, encodings and the tools' packages to the directory that the fleet file names."""
    models = needed(plan.models)
    bundle_exported(name=f"Bundle in {plan.settings.bundle.export_to}", plan=plan, models=models)
