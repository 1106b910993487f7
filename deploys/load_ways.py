"""Which way of loading brings each service's model to its device fastest, by trying; recommends, changes no service."""

from pyinfra import host

from modules.fleet import plan_of
from roles.site import site
from roles.weights.load import load_ways

plan = plan_of(host)
site(plan=plan)
load_ways(plan=plan)
