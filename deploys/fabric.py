"""The network between Sparks, alone; on hosts without a `fabric`, what Tinderbox had configured is undone."""

from pyinfra import host

from modules.fleet import plan_of
from roles.fabric import fabric
from roles.site import site

plan = plan_of(host)
site(plan=plan)
fabric(plan=plan, undo=True)
