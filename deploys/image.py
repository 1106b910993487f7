"""The image stage, alone."""

from pyinfra import host

from modules.fleet import plan_of
from roles.image import image
from roles.site import site

plan = plan_of(host)
site(plan=plan)
image(plan=plan)
