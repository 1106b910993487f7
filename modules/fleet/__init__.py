"""Fleet files: read, checked whole before any connection, and told to roles as plans."""

from modules.fleet.fleet import Fleet
from modules.fleet.loader import load_fleet
from modules.fleet.plan import HostPlan, ServicePlan, plan_for, plan_of
from modules.fleet.problem import FleetError

__all__ = ["Fleet", "FleetError", "HostPlan", "ServicePlan", "load_fleet", "plan_for", "plan_of"]
