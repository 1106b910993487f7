"""Have the last good release back in the place of what serves, or the one that TINDERBOX_RELEASE names."""

from pyinfra import host

from modules.fleet import plan_of
from roles.releases import rollback
from roles.site import site

plan = plan_of(host)
site(plan=plan)
rollback(plan=plan)
