"""The services, alone: their image, weights and encodings must be on the host."""

from pyinfra import host

from modules.fleet import plan_of
from roles.engine import engine
from roles.gateway import agent
from roles.site import site

plan = plan_of(host)
site(plan=plan)
agent(plan=plan)
engine(plan=plan)
