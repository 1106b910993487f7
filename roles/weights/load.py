"""How long the served models take to load, by what was measured on the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyinfra import host
from pyinfra.api import deploy

from modules.facts.survey import Question
from modules.fleet import HostPlan
from modules.operations.load_probe import load_rates_known, load_ways_known, rates_there


def questions(plan: HostPlan) -> Iterator[Question[Any]]:
    """What `probe_load` asks."""
    for service in plan.services:
        question = rates_there(service, plan.settings.weights.home)
        if question is not None:
            yield question


@deploy("Load")
def probe_load(plan: HostPlan) -> None:
    """Know how fast every service's model is read, and warn of a load that will take long; before engines start."""
    for service in host.loop(list(plan.services)):
        load_rates_known(name=f"Time to load {service.name}", plan=service, home=plan.settings.weights.home)


@deploy("Ways to load")
def load_ways(plan: HostPlan) -> None:
    """Know which way of loading is the fastest here, for every service: by trying, in the engine's image."""
    for service in host.loop(list(plan.services)):
        load_ways_known(name=f"Ways to load {service.name}", plan=service, home=plan.settings.weights.home)
