"""pyinfra loads this before the inventory: what holds for every deploy."""

import sys

from pyinfra import config

# pyinfra's command sets it, and every run would compile all of Tinderbox anew. Who asks for that by Python's own option
# or variable still gets it.
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)

from modules.operations.interrupt import end_run_at_ctrl_c
from modules.operations.pyinfra_speed import speed_up
from modules.reporting.host_errors import watch_errors

config.REQUIRE_PYINFRA_VERSION = ">=3.10,<4"
config.SUDO = True
watch_errors()
end_run_at_ctrl_c()
speed_up()
