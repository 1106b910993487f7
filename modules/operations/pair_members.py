"""The members of a service that spans hosts, as a run sees them."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra import host
from pyinfra.api.command import PyinfraCommand

from modules.facts.pair import PairState, ServicePair
from modules.fleet import ServicePlan
from modules.operations.require import foreseen, refusal
from modules.release.files import release_files
from modules.spec.release import Release


def member_state(name: str, service: str, files: list[str] | None = None) -> PairState | None:
    """What another member, or this one, is. None where it says nothing, and also where it is not in this run."""
    other = host if name == host.name else host.state.inventory.get_host(name)
    return other.get_fact(ServicePair, service=service, files=files or [])


def absent_members(plan: ServicePlan) -> list[str]:
    """Members that this run leaves out."""
    limit = host.state.limit_hosts
    there = {one.name for one in (host.state.inventory if limit is None else limit)}
    return [] if plan.cluster is None else [name for name in plan.cluster.hosts if name not in there]


def whole(plan: ServicePlan) -> Generator[PyinfraCommand, None, bool]:
    """Refuse a run that has only a part of the service's hosts, or in which one of them has failed."""
    absent = absent_members(plan)
    failed = sorted(one.name for one in host.state.failed_hosts if plan.cluster and one.name in plan.cluster.hosts)
    names = ", ".join(plan.cluster.hosts) if plan.cluster is not None else ""
    if absent:
        yield foreseen(
            f"{host.name}: service {plan.name} spans {names}, and this run leaves out {', '.join(absent)}: its hosts "
            "change together or not at all. Run with all of them (--limit takes several). What runs was left running."
        )
    elif failed:
        yield refusal(
            f"{host.name}: service {plan.name} spans {names}, and {', '.join(failed)} failed in this run: mend that, "
            "and run again. Nothing of the service was changed here; what runs was left running."
        )
    return not absent and not failed


def parts_apart(plan: ServicePlan, release: Release) -> list[str]:
    """What on the service's workers is not as its release has it, in words."""
    found = []
    for name in plan.cluster.hosts[1:] if plan.cluster is not None else ():
        files = release_files(release, {}, name)
        there = member_state(name, plan.name, [file.path for file in files]) or PairState()
        found += [f"{name}: {file.path} differs" for file in files if there.files.get(file.path) != file.sha256]
        if there.current != release.id or there.active not in {"active", "activating"}:
            found.append(f"{name}: release {there.current or 'none'} is in force, and its unit is {there.active}")
    return found
