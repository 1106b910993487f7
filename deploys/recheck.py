"""The end of a rollout: hosts that are as they should be are looked at again, and what nothing needs any more goes."""

from pyinfra import host

from modules.fleet import plan_of
from roles.engine import engine
from roles.gate import gate
from roles.image import prune
from roles.rollout import is_held, note
from roles.site import site
from roles.survey import surveyed
from roles.weights.clean import clean_weights

plan = plan_of(host)
surveyed(plan)
site(plan=plan)
note(plan=plan)
if not is_held(plan.name):
    engine(plan=plan)
    gate(plan=plan)
    clean_weights(plan=plan)
    prune(plan=plan)
