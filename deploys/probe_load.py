"""How fast the hosts read their models from the disk and from memory; warns of one where a load will take long."""

from pyinfra import host

from modules.fleet import plan_of
from roles.site import site
from roles.weights.load import probe_load

plan = plan_of(host)
site(plan=plan)
probe_load(plan=plan)
