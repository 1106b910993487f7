"""Export what a converged host has, with a manifest of hashes, to `bundle.export_to`: for hosts without internet."""

from pyinfra import host

from modules.fleet import plan_of
from roles.bundle import bundle
from roles.site import site

plan = plan_of(host)
site(plan=plan)
bundle(plan=plan)
