"""A nightly check of drift and gate, by this checkout on this machine: pyinfra @local deploys/nightly.py."""

import sys

from modules.fleet import FleetError, load_fleet
from roles.nightly import nightly

try:
    fleet = load_fleet()
except FleetError as error:
    sys.exit(f"{error}\n\nnothing was changed")
nightly(fleet=fleet)
