"""How fast the links between Sparks are, held against what they should reach. Measured again when something changed."""

from pyinfra import host

from modules.fleet import plan_of
from roles.fabric.gate import fabric_gate
from roles.site import site

plan = plan_of(host)
site(plan=plan)
fabric_gate(plan=plan)
