"""What pyinfra loads: the hosts of the fleet file that TINDERBOX_FLEET names, or the lab's."""

from inventory import pyinfra_groups as _pyinfra_groups

globals().update(_pyinfra_groups())
