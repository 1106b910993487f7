"""The operating system's settings, alone."""

from pyinfra import host

from modules.fleet import plan_of
from roles.site import site
from roles.system import system

plan = plan_of(host)
site(plan=plan)
system(plan=plan)
