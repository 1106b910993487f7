"""Take back what Tinderbox has put on a host: the layers that TINDERBOX_LAYERS names, or services alone.

TINDERBOX_LAYERS=engine,images,weights,system (or all): docs/remove.md. Without it: the service that TINDERBOX_SERVICE
names, else those that the fleet file has no more; weights and images stay, unless TINDERBOX_REMOVE says weights,
images, or both.
"""

from pyinfra import host

from modules.fleet import plan_of
from modules.operations.asked import asked_layers
from roles.leave import leave
from roles.releases import remove
from roles.site import site

plan = plan_of(host)
if asked_layers():
    leave(plan=plan)
else:
    site(plan=plan)
    remove(plan=plan)
