"""pyinfra loads this before the inventory: what holds for every deploy."""

from pyinfra import config

from modules.operations.interrupt import end_run_at_ctrl_c
from modules.reporting.host_errors import watch_errors

config.REQUIRE_PYINFRA_VERSION = ">=3.10,<4"
config.SUDO = True
watch_errors()
end_run_at_ctrl_c()
