"""Docker and NVIDIA's container toolkit, alone."""

from pyinfra import host

from modules.fleet import plan_of
from roles.runtime import runtime
from roles.site import site

plan = plan_of(host)
site(plan=plan)
runtime(plan=plan)
