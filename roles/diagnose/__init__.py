"""Say what is wrong on a host and what to do about it; change nothing."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra import host, logger
from pyinfra.api import deploy

from modules.catalog import load_catalog
from modules.diagnosis import bundle_of, diagnose, report
from modules.facts.evidence import Evidence
from modules.fleet import HostPlan, load_fleet
from modules.fleet.at_hand import secrets_at_hand
from modules.release import layout


@deploy("Diagnose")
def diagnosis(plan: HostPlan) -> None:
    """Print the findings of each service, or of the host where it has none.

    They are printed while the run is prepared, so that a dry run tells them too.
    """
    for service in plan.services:
        tell(plan.name, service.name)
    if not plan.services:
        tell(plan.name, None)


def tell(name: str, service: str | None) -> None:
    """Gather, match, print."""
    document = host.get_fact(Evidence, service=service)
    title = f"{name}: {service or 'the host'}"
    if document is None:
        logger.error(f"{title}: Tinderbox's programs are not on this host yet; deploys/site.py puts them there")
        return
    bundle = bundle_of(document, secrets_at_hand(load_fleet()))
    logger.info(title)
    for line in unit_lines(document["unit"] or {}, service):
        logger.info(f"    {line}")
    for line in report(diagnose(bundle, load_catalog().signatures)):
        logger.info(f"    {line}")


def unit_lines(unit: Mapping[str, str], service: str | None) -> list[str]:
    """What systemd says of the service; a server that is down without a fault leaves no other trace."""
    state = unit.get("ActiveState")
    if service is None or state is None:
        return []
    name = layout.unit_name(service)
    told = f"{name} is {state} ({unit.get('SubState', '?')})"
    if state == "inactive":
        return [f"{told}: nobody has started it, or somebody stopped it; `make converge`, or systemctl start {name}"]
    return [told]
