"""All that a change needs on the hosts before any server is stopped for it, and which hosts need a turn then."""

from pyinfra import host

from modules.fleet import plan_of
from roles.cuda import cuda
from roles.encodings import encodings
from roles.fabric import fabric
from roles.gateway import agent, gateway
from roles.image import image
from roles.monitoring import monitoring
from roles.preflight import preflight
from roles.rollout import survey
from roles.runtime import runtime
from roles.site import site
from roles.survey import surveyed
from roles.system import system
from roles.weights import weights
from roles.weights.load import probe_load

plan = plan_of(host)
preflight(plan=plan)
surveyed(plan)
site(plan=plan)
system(plan=plan)
fabric(plan=plan)
cuda(plan=plan)
runtime(plan=plan)
image(plan=plan)
encodings(plan=plan)
weights(plan=plan)
probe_load(plan=plan)
agent(plan=plan)
monitoring(plan=plan)
gateway(plan=plan)
survey(plan=plan)
