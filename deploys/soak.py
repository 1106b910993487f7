"""Watch the canary of a rollout until it has served for long enough. Changes nothing."""

from pyinfra import host

from modules.fleet import plan_of
from roles.rollout import soak

soak(plan=plan_of(host))
