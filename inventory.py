"""What pyinfra loads: the hosts of the fleet file that TINDERBOX_FLEET names, or the lab's."""

from inventory import pyinfra_groups as _pyinfra_groups
from inventory.first_login import open_hosts as _open_hosts
from inventory.terminal import ask_nobody as _ask_nobody

_open_hosts()
globals().update(_pyinfra_groups())
_ask_nobody()
