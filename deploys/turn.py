"""A host's turn in a rollout: what ends its server for a while, and its gate. After deploys/prepare.py."""

from pyinfra import host

from modules.fleet import plan_of
from roles.engine import engine
from roles.gate import gate
from roles.rollout import note
from roles.runtime import runtime
from roles.site import site
from roles.survey import surveyed

plan = plan_of(host)
surveyed(plan)
site(plan=plan)
note(plan=plan)
runtime(plan=plan)
engine(plan=plan)
gate(plan=plan)
