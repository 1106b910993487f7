"""Go over the fleet step by step: ask who needs a turn, hold back, watch a canary, note what came of it."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import deploy

from modules.fleet import HostPlan, load_fleet
from modules.operations.asked import rollout
from modules.operations.rollout import release_surveyed, rollout_noted, service_soaked, turn_taken
from modules.rollout.record import record_here


def _survey(plan: HostPlan) -> None:
    for service in host.loop(list(plan.services)):
        release_surveyed(name=f"What {service.name} is to serve", plan=service, services=plan)


@deploy("Rollout")
def survey(plan: HostPlan) -> None:
    """Have the host tell whether it needs a turn; nothing is changed."""
    _survey(plan)


@deploy("Strategy")
def held_to_strategy(plan: HostPlan) -> None:
    """Where the fleet file has a strategy, and nobody goes by it step by step, let one batch at most change."""
    strategy = load_fleet().strategy
    if strategy is None or rollout():
        return
    _survey(plan)
    turn_taken(name="No more hosts at once than the strategy lets", strategy=strategy)


@deploy("Soak")
def soak(plan: HostPlan) -> None:
    """Watch all services of the host until each has served for as long as the strategy says."""
    strategy = load_fleet().strategy
    if strategy is None:
        return
    for service in host.loop(list(plan.services)):
        service_soaked(name=f"{service.name} lasts", plan=service, seconds=float(strategy.soak_s))


@deploy("Rollout")
def note(plan: HostPlan) -> None:
    """Keep on the host what became of the rollout."""
    rollout_noted(name="Note of it beside the ledger")


def is_held(name: str) -> bool:
    """Whether the rollout has stopped before this host's turn: what it serves is left alone."""
    record = record_here()
    return record is not None and name in record.held
