"""A verdict on each host, with what it costs and what to do, and what a deploy would do there. Changes nothing."""

from pyinfra import host

from modules.fleet import plan_of
from roles.preflight import preflight

preflight(plan=plan_of(host))
