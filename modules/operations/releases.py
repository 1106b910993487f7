"""An operator's hand on a service: roll it back, stop it, take it off its host."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra import host
from pyinfra.api import FunctionCommand, QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.releases import HostReleases, ServiceReleases
from modules.fleet import ServicePlan
from modules.operations.asked import RELEASE, asked_release, forced, operator
from modules.operations.gate_memory import forget_service
from modules.operations.job import start_command
from modules.operations.require import refusal, unreadable
from modules.operations.start_job import follow_start, start_job
from modules.release import layout
from modules.release.rollback import way_back

END = str(layout.PROGRAMS / "end_service.py")


def _found(service: str) -> ServiceReleases | str | None:
    """What the host has of it; its other services in words where it has nothing; None where it gave no answer."""
    services = host.get_fact(HostReleases)
    if services is None:
        return None
    return services.get(service) or f"its ledger has {', '.join(services) or 'no service'}"


@operation()
def service_rolled_back(plan: ServicePlan) -> Generator[PyinfraCommand, None, None]:
    """Have the last good release before the one that serves, or the named one, back; the other is not tried again.

    One that does not get ready makes way for what served before.

    + plan: the service
    """
    found = _found(plan.name)
    if found is None:
        yield from unreadable(f"the releases of service {plan.name}")
        return
    if isinstance(found, str):
        yield refusal(
            f"{host.name}: there is no service {plan.name} to roll back: {found}. Run deploys/spark.py first."
        )
        return
    way = way_back(found, asked_release(), forced=forced())
    if way.done is not None:
        host.noop(f"{plan.name}: {way.done}")
    elif way.target is None:
        yield refusal(
            f"{host.name}: service {plan.name} can not be rolled back: {way.refused}. Name a release by "
            f"{RELEASE}=…, or change the fleet file and run again; what runs was left running."
        )
    else:
        instead = found.current if found.current != way.target else None
        host.log(f"{plan.name}: from release {found.current} back to {way.target}")
        job = start_job(plan, way.target, instead=instead)
        yield start_command(job)
        yield FunctionCommand(follow_start, (job, plan.name, way.target), {})


@operation()
def service_stopped(service: str) -> Generator[PyinfraCommand, None, None]:
    """Have it stopped, over a restart of the host, too, until the next run of deploys/spark.py or deploys/engine.py.

    + service: its name
    """
    found = _found(service)
    if found is None:
        yield from unreadable(f"the state of service {service}")
        return
    if isinstance(found, str):
        yield refusal(f"{host.name}: there is no service {service} to stop: {found}")
        return
    if found.active in {"inactive", "failed"} and not found.enabled:
        host.noop(f"{service} is stopped")
        return
    yield StringCommand(layout.PYTHON, END, "stop", QuoteString(service), "--by", QuoteString(operator()))


@operation()
def service_removed(service: str) -> Generator[PyinfraCommand, None, None]:
    """Have nothing of it on the host: unit, container, settings, caches, measurements, releases.

    + service: its name, also of one that the fleet file has no more
    """
    found = _found(service)
    if found is None:
        yield from unreadable(f"the state of service {service}")
        return
    if isinstance(found, str):
        host.noop(f"{service} is not on this host; {found}")
        return
    yield StringCommand(layout.PYTHON, END, "remove", QuoteString(service), "--by", QuoteString(operator()))
    yield FunctionCommand(forget_service, (service,), {})
