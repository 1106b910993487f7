"""Only look: can each host do what the fleet file wants of it? Changes nothing."""

from pyinfra import host

from modules.fleet import plan_of
from roles.preflight import preflight

preflight(plan=plan_of(host))
