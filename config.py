"""pyinfra loads this before the inventory: what holds for every deploy."""

from pyinfra import config

config.REQUIRE_PYINFRA_VERSION = ">=3.10,<4"
config.SUDO = True
