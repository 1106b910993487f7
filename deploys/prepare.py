"""All that a change needs on the hosts before any server is stopped for it, and which hosts need a turn then."""

from pyinfra import host

from modules.fleet import plan_of
from roles.cuda import cuda
from roles.encodings import encodings
from roles.image import image
from roles.preflight import preflight
from roles.rollout import survey
from roles.runtime import runtime
from roles.site import site
from roles.system import system
from roles.weights import weights
from roles.weights.load import probe_load

plan = plan_of(host)
preflight(plan=plan)
site(plan=plan)
system(plan=plan)
cuda(plan=plan)
runtime(plan=plan)
image(plan=plan)
encodings(plan=plan)
weights(plan=plan)
probe_load(plan=plan)
survey(plan=plan)
