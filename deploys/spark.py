"""Everything, in order: from a bare login to a server that has proved its speed."""

from pyinfra import host

from modules.fleet import plan_of
from roles.cuda import cuda
from roles.encodings import encodings
from roles.engine import engine
from roles.gate import gate
from roles.image import image
from roles.preflight import preflight
from roles.runtime import runtime
from roles.site import site
from roles.weights import weights

plan = plan_of(host)
# One line a stage: pyinfra orders operations by the line that called them, so a loop would mix the stages.
preflight(plan)
site(plan)
cuda(plan)
runtime(plan)
image(plan)
encodings(plan)
weights(plan)
engine(plan)
gate(plan)
