"""Remove the images of ours that nothing needs any more, alone."""

from pyinfra import host

from modules.fleet import plan_of
from roles.image import prune
from roles.site import site

plan = plan_of(host)
site(plan=plan)
prune(plan=plan)
