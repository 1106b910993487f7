"""The weights stage, alone."""

from pyinfra import host

from modules.fleet import plan_of
from roles.site import site
from roles.weights import weights

plan = plan_of(host)
site(plan=plan)
weights(plan=plan)
