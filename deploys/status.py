"""Each host's services, speed, queue, memory, GPU and gates now; `make status` is the fast form. Changes nothing."""

from pyinfra import host

from modules.fleet import plan_of
from roles.status import status

status(plan=plan_of(host))
