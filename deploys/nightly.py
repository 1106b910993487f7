"""A nightly check of drift and gate, by this checkout on this machine: pyinfra @local deploys/nightly.py."""

from modules.fleet import load_fleet
from roles.nightly import nightly

nightly(fleet=load_fleet())
