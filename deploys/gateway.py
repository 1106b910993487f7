"""The fleet's one endpoint, alone: the agents of the hosts that serve, and the gateway on its host."""

from pyinfra import host

from modules.fleet import plan_of
from roles.gateway import agent, gateway
from roles.site import site
from roles.system import system

plan = plan_of(host)
site(plan=plan)
# What the fleet file has no more is taken away there.
system(plan=plan)
agent(plan=plan)
gateway(plan=plan)
