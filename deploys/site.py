"""The site's network settings and our programs, alone."""

from pyinfra import host

from modules.fleet import plan_of
from roles.site import site

site(plan=plan_of(host))
