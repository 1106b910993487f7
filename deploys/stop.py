"""Stop the services (TINDERBOX_SERVICE: one of them), over a restart of the host, too, until the next deploy."""

from pyinfra import host

from modules.fleet import plan_of
from roles.releases import stop
from roles.site import site

plan = plan_of(host)
site(plan=plan)
stop(plan=plan)
