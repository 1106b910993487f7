"""What services logged, of all hosts by time (TINDERBOX_SINCE, _SERVICE); `make logs` also follows. Changes nothing."""

from pyinfra import host

from modules.fleet import plan_of
from roles.logs import logs

logs(plan=plan_of(host))
