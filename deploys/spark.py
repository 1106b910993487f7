"""Everything, in order: from a bare login to a server that has proved its speed."""

from pyinfra import host

from modules.fleet import plan_of
from roles.cuda import cuda
from roles.encodings import encodings
from roles.engine import engine
from roles.fabric import fabric
from roles.gate import gate
from roles.gateway import agent, gateway
from roles.image import image, prune
from roles.monitoring import monitoring
from roles.preflight import preflight
from roles.runtime import runtime
from roles.site import site
from roles.survey import surveyed
from roles.system import system
from roles.weights import weights
from roles.weights.clean import clean_weights
from roles.weights.load import probe_load

plan = plan_of(host)
# One line a stage: pyinfra orders operations by the line that called them, so a loop would mix the stages.
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
# Before a server is stopped gateways must be told, and not be sent to it before its gate has passed it.
agent(plan=plan)
engine(plan=plan)
gate(plan=plan)
monitoring(plan=plan)
gateway(plan=plan)
clean_weights(plan=plan)
prune(plan=plan)
