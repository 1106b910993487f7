"""Measure every service and hold it to its gate, and change nothing else on the hosts; for checks, as every night's."""

from pyinfra import host

from modules.fleet import plan_of
from roles.gate import gate

gate(plan=plan_of(host), asked=True)
