"""What every later stage stands on: the connection, our programs on the host, the site's network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra import host
from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan
from modules.operations.connection import keep_alive
from modules.operations.host_hold import host_held
from modules.operations.hostside import PROGRAMS_THERE, hostside_installed
from modules.operations.site import settings_there, site_files, site_settled
from roles.preflight.sudo import stop_where_sudo_asks


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What this stage asks."""
    yield PROGRAMS_THERE
    yield settings_there(site_files(plan.settings.network, plan.ca_bundle))


@deploy("Site")
def site(plan: HostPlan) -> None:
    """Make the host reach the outside the way the fleet file says."""
    keep_alive(host)
    # Not asked again where preflight or an earlier stage went before.
    if not host.op_hash_order:
        stop_where_sudo_asks(host)
    host_held(name="No other run changes this host")
    hostside_installed(name="Programs for the host")
    site_settled(
        name="Proxies, mirrors and certificate authorities",
        network=plan.settings.network,
        ca_bundle=plan.ca_bundle,
    )
