"""Each service's releases: when, how they stand, what their gate found, what changed. Changes nothing."""

from pyinfra import host

from modules.fleet import plan_of
from roles.history import history

history(plan=plan_of(host))
