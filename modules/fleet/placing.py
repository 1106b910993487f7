"""The services of a fleet file that it gives no host by itself: read, placed, and refused where that can not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from modules.catalog import Catalog
from modules.fleet.claims import Sizes, memory_of, reserve_of
from modules.fleet.compose import model_of
from modules.fleet.layers import Layers
from modules.fleet.placement import Misfit, Place, Placement, Wish, placed
from modules.fleet.problem import Key, Problem
from modules.fleet.suggest import advice
from modules.fleet.tree import Tree, find
from modules.fleet.validate import validated
from modules.memory.plan import Machine
from modules.spec.fleet import PlacedService
from modules.spec.lock import Lock
from modules.spec.settings import HostSettings, Service


@dataclass
class Placing:
    """Places the services of one file. `problems`: why one can not be placed; what is told elsewhere is passed over.

    `settings`: of each host, without them.
    """

    tree: Tree
    layers: Layers
    sizes: Sizes
    settings: Mapping[str, HostSettings]
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def of(cls, tree: Tree, layers: Layers, catalog: Catalog, lock: Lock) -> Placing:
        """Of a file whose layers may have faults of their own."""
        known = {name: validated(HostSettings, layers.settings(name)) for name in layers.hosts}
        right = {name: settings for name, settings in known.items() if not isinstance(settings, list)}
        return cls(tree, layers, Sizes(catalog, lock), right)

    def placement(self) -> Placement:
        """Where they go, with what the lock says; those with a fault go nowhere."""
        wishes = [wish for name in self.layers.unplaced for wish in self._wishes(name)]
        found = placed(wishes, self._places(), self.sizes.lock.placements)
        self.problems += [self._misfit(misfit, found) for misfit in found.misfits]
        return found

    def _places(self) -> Iterator[Place]:
        for name, settings in self.settings.items():
            machine = Machine(memory_of(settings), reserve=reserve_of(settings))
            place = Place(name, machine.memory - machine.reserve)
            for service, one in settings.services.items():
                known = one.engine in self.sizes.catalog.engines
                place.taken[service] = (self.sizes.claim(one, machine) or 0) if known else 0
                place.ports[one.port] = service
            yield place

    def _wishes(self, name: str) -> Iterator[Wish]:
        written = validated(PlacedService, find(self.tree, ("services", name)).tree)
        if isinstance(written, list):
            return
        hosts = self._hosts(name, written)
        here = {host: self.layers.candidate(host, name) for host in hosts}
        services: dict[str, Service] = {}
        for host, tree in here.items():
            service = None if tree is None else validated(Service, tree)
            if isinstance(service, list):
                self.problems += service
            elif service is not None and host in self.settings and service.engine in self.sizes.catalog.engines:
                services[host] = service
        hosts = tuple(host for host in hosts if host in services)
        if not hosts or any(model_of(one, self.sizes.catalog) is None for one in services.values()):
            return
        if written.replicas is not None and not self._can_be_placed(name, written, len(hosts)):
            return
        claims = {host: self._claim(host, service) for host, service in services.items()}
        if written.replicas is not None and None in claims.values():
            what = "how large this model is is not known before the hub was asked, so no host can be chosen for it"
            self._tell(name, ("model",), what, "write size_gib in a model that is written out, or take replicas out")
            return
        yield Wish(
            name,
            written.replicas,
            hosts,
            {host: claim or 0 for host, claim in claims.items()},
            {host: service.port for host, service in services.items()},
            written.priority,
        )

    def _claim(self, host: str, service: Service) -> int | None:
        return self.sizes.claim(service, self._machine(host))

    def _machine(self, host: str, taken: int = 0) -> Machine:
        settings = self.settings[host]
        return Machine(memory_of(settings), neighbours=taken, reserve=reserve_of(settings))

    def _hosts(self, name: str, written: PlacedService) -> tuple[str, ...]:
        """On which the service may be, by the groups and hosts that it names; a layer's null takes it off a host."""
        groups = tuple((find(self.tree, ("groups",)).tree.keys or {}) if self.tree.child("groups") else {})
        for at, one in enumerate(written.on):
            if one not in groups and one not in self.layers.hosts:
                todo = advice(one, (*groups, *self.layers.hosts), "groups and hosts")
                self._tell(name, ("on", at), f"no group and no host {one!r} in this fleet", todo)
        wanted = set(written.on)
        found = tuple(
            host
            for host in self.layers.hosts
            if (not wanted or host in wanted or wanted & set(self.layers.groups(host)))
            and self.layers.candidate(host, name) is not None
        )
        if not found and all(one in groups or one in self.layers.hosts for one in written.on):
            self._tell(name, ("on",) if written.on else (), "there is no host for it", "name a group that has hosts")
        return found

    def _can_be_placed(self, name: str, written: PlacedService, hosts: int) -> bool:
        if written.cluster is not None:
            what = "a service that spans hosts names them under cluster, and is not placed"
            self._tell(name, ("replicas",), what, "take replicas out, and name the same hosts under on")
            return False
        if written.replicas is not None and written.replicas > hosts:
            what = f"{written.replicas} replicas, one to a host, and it may be on {hosts} host{'s' * (hosts != 1)}"
            self._tell(name, ("replicas",), what, f"write {hosts} or less, or name more groups under on")
            return False
        return True

    def _misfit(self, misfit: Misfit, found: Placement) -> Problem:
        """Refuse a service that has no place, with what would have one."""
        wish, wanted = misfit.wish, misfit.wish.replicas or 0
        why = "; ".join(f"{host}: {text}" for host, text in misfit.why.items())
        what = f"{wanted - len(misfit.placed)} of {wanted} replicas fit nowhere: {why}"
        ways = list(dict.fromkeys(self._ways(misfit, found)))
        if misfit.placed:
            ways.append(f"replicas: {len(misfit.placed)}")
        todo = f"would fit: {', or '.join(ways)}" if ways else "name more hosts under on, or take a smaller model"
        return Problem(find(self.tree, ("services", wish.name, "replicas")).origin, what, todo)

    def _ways(self, misfit: Misfit, found: Placement) -> Iterator[str]:
        free = [host for host in misfit.why if misfit.wish.ports[host] not in found.places[host].ports]
        if not free:
            return
        host = max(free, key=lambda one: found.places[one].left)
        tree = self.layers.candidate(host, misfit.wish.name)
        service = None if tree is None else validated(Service, tree)
        if isinstance(service, Service):
            taken = sum(found.places[host].taken.values())
            yield from self.sizes.would_fit(service, self._machine(host, taken))

    def _tell(self, name: str, key: Key, what: str, todo: str) -> None:
        self.problems.append(Problem(find(self.tree, ("services", name, *key)).origin, what, todo))
