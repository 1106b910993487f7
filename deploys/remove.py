"""Take off the service that TINDERBOX_SERVICE names, else those that the fleet file has no more.

Weights and images stay, unless TINDERBOX_REMOVE says weights, images, or both.
"""

from pyinfra import host

from modules.fleet import plan_of
from roles.releases import remove
from roles.site import site

plan = plan_of(host)
site(plan=plan)
remove(plan=plan)
