"""The gates, because they were asked for: measure and judge the releases that serve."""

from pyinfra import host

from modules.fleet import plan_of
from roles.gate import gate
from roles.site import site

plan = plan_of(host)
site(plan=plan)
gate(plan=plan, asked=True)
