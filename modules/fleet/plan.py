"""What a role needs to know of one host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from modules.catalog import Catalog, load_catalog
from modules.fleet.compose import chosen_recipe, composed_engine, composed_flags, composed_recipe, draft_of
from modules.fleet.files import DATASETS
from modules.fleet.gateway import agent_plan
from modules.fleet.loader import load_fleet
from modules.spec.answers import Answers
from modules.spec.cluster import Cluster
from modules.spec.engine import Engine, FlagValue
from modules.spec.fleet import ResolvedHost
from modules.spec.gate import Gate
from modules.spec.image import Recipe
from modules.spec.model import Encoding, Model
from modules.spec.settings import HostSettings, Service


class NamedHost(Protocol):
    """The part of pyinfra's host that is needed here."""

    name: str


@dataclass(frozen=True)
class ServicePlan:
    """A service with everything that the catalog says of it. `flags`: engine's, profile's and service's, merged.

    `recipe`: with the fleet file's changes. `encodings`: file name → entry. `answers`: those that its gate names.
    `draft`: the draft model. `drain_s`: how long its gateways' requests are waited for before it is stopped.
    `host`: whose service it is.
    """

    name: str
    service: Service
    engine: Engine
    model: Model
    recipe: Recipe
    flags: dict[str, FlagValue]
    gate: Gate | None
    encodings: dict[str, Encoding]
    answers: Answers | None = None
    drain_s: int = 0
    draft: Model | None = None
    host: str = ""

    @property
    def cluster(self) -> Cluster | None:
        """The hosts that it spans, where it spans several."""
        return self.service.cluster

    @property
    def is_worker(self) -> bool:
        """Whether this host only takes part in it: another one, the head, has its API."""
        return self.cluster is not None and self.host != self.cluster.head

    @property
    def names(self) -> tuple[str, ...]:
        """By which clients ask for its model, the first of them being the model's own."""
        return (self.model.served_as, *self.service.aliases)

    @property
    def models(self) -> tuple[Model, ...]:
        """What it serves, and what drafts for that."""
        return (self.model,) if self.draft is None else (self.model, self.draft)


@dataclass(frozen=True)
class HostPlan:
    """A host with its settings and services. `ca_bundle_path`: on the controller."""

    name: str
    settings: HostSettings
    services: tuple[ServicePlan, ...]

    @property
    def ca_bundle_path(self) -> Path | None:
        """Extra certificate authorities of the site, in PEM form."""
        bundle = self.settings.network.ca_bundle
        return None if bundle is None else Path(bundle)

    @property
    def ca_bundle(self) -> str | None:
        """Their text."""
        return None if self.ca_bundle_path is None else self.ca_bundle_path.read_text()

    @property
    def in_order(self) -> tuple[ServicePlan, ...]:
        """Its services, who starts first at the front: by priority, and of one priority as they stand in the file."""
        return tuple(sorted(self.services, key=lambda one: -one.service.priority))

    @property
    def models(self) -> tuple[Model, ...]:
        """Of all services; one that two share stands there twice."""
        return tuple(model for service in self.services for model in service.models)

    @property
    def simulated(self) -> bool:
        """Whether this is a lab host."""
        return self.settings.hardware.simulated


def plan_of(host: NamedHost) -> HostPlan:
    """Give the plan of a pyinfra host, found by its name in the process's fleet."""
    return plan_for(host.name)


def plan_for(name: str) -> HostPlan:
    """Give the plan of the host of that name in the process's fleet.

    Raises `KeyError`: there is none, so the inventory was not inventory.py.
    """
    hosts = load_fleet().hosts
    agent = agent_plan(name, hosts)
    plan = host_plan(hosts[name], load_catalog())
    if agent is None:
        return plan
    drained = (replace(one, drain_s=agent.drain_s) if one.name in agent.services else one for one in plan.services)
    return replace(plan, services=tuple(drained))


def host_plan(host: ResolvedHost, catalog: Catalog) -> HostPlan:
    """Give the plan of a host of a loaded fleet."""
    services = tuple(
        _service_plan(host.name, name, service, catalog) for name, service in host.settings.services.items()
    )
    return HostPlan(name=host.name, settings=host.settings, services=services)


def _service_plan(host: str, name: str, service: Service, catalog: Catalog) -> ServicePlan:
    engine = catalog.engines[service.engine]
    model = catalog.models[service.model] if isinstance(service.model, str) else service.model
    gate = catalog.gates[service.gate] if isinstance(service.gate, str) else service.gate
    # What has no API is not measured: the head's gate is that of all members.
    gate = gate if service.cluster is None or service.cluster.head == host else None
    answers = None if gate is None else gate.answers
    recipe = chosen_recipe(engine, service.image, catalog.images)
    assert recipe is not None, "a name that is none was refused"
    return ServicePlan(
        name=name,
        service=service,
        engine=composed_engine(engine, service),
        model=model,
        recipe=composed_recipe(recipe, service.image),
        flags=composed_flags(engine, service, model),
        gate=None if gate is None else _with_dataset(gate),
        encodings={file: catalog.encodings[file] for file in model.encodings},
        answers=catalog.answers[answers] if isinstance(answers, str) else answers,
        draft=draft_of(service, catalog),
        host=host,
    )


def _with_dataset(gate: Gate) -> Gate:
    """Its dataset by an absolute path: one that the fleet file's folder has not, ships with Tinderbox."""
    if gate.sharegpt is None or Path(gate.sharegpt.dataset.file).is_absolute():
        return gate
    dataset = gate.sharegpt.dataset.model_copy(update={"file": str(DATASETS / gate.sharegpt.dataset.file)})
    return gate.model_copy(update={"sharegpt": gate.sharegpt.model_copy(update={"dataset": dataset})})
