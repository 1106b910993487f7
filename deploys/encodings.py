"""The encodings stage, alone."""

from pyinfra import host

from modules.fleet import plan_of
from roles.encodings import encodings
from roles.site import site

plan = plan_of(host)
site(plan=plan)
encodings(plan=plan)
