"""Load a fleet file: read it, lay its layers over each other, check all of it, tell all that is wrong at once."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from modules.catalog import Catalog, load_catalog
from modules.fleet.check import settings_problems
from modules.fleet.cluster_addresses import with_addresses
from modules.fleet.clusters import cluster_problems, strategy_problem
from modules.fleet.fabric_check import fabric_problems
from modules.fleet.fleet import Fleet
from modules.fleet.fleet_remarks import fleet_remarks
from modules.fleet.gateway_check import gateway_problems
from modules.fleet.inline_secret import InlineSecrets
from modules.fleet.layers import Layers
from modules.fleet.lock import read_lock
from modules.fleet.monitoring_check import monitoring_problems
from modules.fleet.needs import used_secrets
from modules.fleet.own_models import model_problems, model_remarks, own_models, with_models, with_own_models
from modules.fleet.problem import FleetError, Problem
from modules.fleet.remarks import settings_remarks
from modules.fleet.resolve import Resolver
from modules.fleet.shape import (
    opened,
    others_listen,
    same_address,
    same_peer_address,
    shape_problems,
    undeclared_passwords,
)
from modules.fleet.source import read_tree
from modules.fleet.strategy_check import strategy_problems
from modules.fleet.tree import Tree
from modules.fleet.validate import validated
from modules.spec.fleet import FleetFile, ResolvedHost, Ssh
from modules.spec.lock import Lock
from modules.spec.settings import HostSettings

DEFAULT_FLEET = Path(__file__).resolve().parents[2] / "inventory" / "lab.yaml"


def load_fleet(path: Path | None = None) -> Fleet:
    """Load a fleet file, once a process.

    `path`: where it is; without one, what TINDERBOX_FLEET says, else the lab's.

    Raises `FleetError`: with all problems, each `file:line: key.path: what is wrong; what to do`; also of its lock.
    """
    wanted = path or Path(os.environ.get("TINDERBOX_FLEET") or DEFAULT_FLEET)
    return _load(wanted.expanduser().absolute())


@functools.cache
def _load(path: Path) -> Fleet:
    tree = opened(read_tree(path))
    models = own_models(tree)
    catalog = with_models(load_catalog(), models)
    inline = InlineSecrets(tree)
    layers = Layers(tree)
    places = _placed(tree, layers, catalog, path)
    problems = [
        *places.problems,
        *shape_problems(tree),
        *layers.problems(catalog),
        *model_problems(models, load_catalog(), tree),
    ]
    hosts: list[ResolvedHost] = []
    for name in layers.hosts:
        host, wrong = _host(name, layers, catalog, path.parent)
        problems += wrong
        hosts += [host] if host is not None else []
    problems = _but_for_strays(problems, layers.unknown_services())
    problems += undeclared_passwords(layers, tree)
    problems += same_address(hosts, tree)
    problems += same_peer_address(hosts, tree)
    problems += others_listen(hosts, layers)
    problems += fabric_problems(hosts, layers)
    hosts = with_addresses(hosts)
    problems += strategy_problems(tree)
    problems += monitoring_problems(hosts, tree)
    problems += gateway_problems(hosts, {host.name: layers.settings(host.name) for host in hosts}, catalog)
    problems += cluster_problems(hosts, layers.hosts, catalog, layers.settings)
    problems += strategy_problem(hosts, tree)
    # Of what is wrong otherwise nobody can say whether it fits.
    problems += [] if problems else _crowded(hosts, layers, catalog, path)
    # Secrets are not fetched: reading a file shall cost nobody a passphrase. A run that needs them does it.
    file = validated(FleetFile, tree)
    if problems or inline.problems or isinstance(file, list):
        raise FleetError(path, inline.masked(problems))
    # Read again where it is used; here so that a wrong one is told before any host is contacted.
    read_lock(path)
    remarks = [one for host in hosts for one in settings_remarks(host.settings, catalog, layers.settings(host.name))]
    remarks += [*model_remarks(models, catalog, tree), *fleet_remarks(hosts, file.strategy, tree, layers.settings)]
    hosts = [host.model_copy(update={"settings": with_own_models(host.settings, models)}) for host in hosts]
    return Fleet.of(
        file,
        path,
        hosts,
        tree,
        remarks=tuple(dict.fromkeys(remarks)),
        needed=used_secrets(hosts, catalog),
        placements=places.hosts,
    )


@dataclass(frozen=True)
class _Places:
    """Where the fleet's own services are. `hosts`: service → hosts."""

    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def _placed(tree: Tree, layers: Layers, catalog: Catalog, path: Path) -> _Places:
    """Put the fleet's own services on hosts."""
    if not layers.unplaced:
        return _Places()
    # Few fleets have any, and every run of pyinfra would pay for the import.
    from modules.fleet.placing import Placing

    placing = Placing.of(tree, layers, catalog, _lock_if_right(path))
    found = placing.placement()
    layers.place(found.hosts)
    return _Places(found.hosts, tuple(placing.problems))


def _crowded(hosts: Sequence[ResolvedHost], layers: Layers, catalog: Catalog, path: Path) -> list[Problem]:
    """What does not fit on a host beside the others there."""
    if not any(len(host.settings.services) > 1 for host in hosts):
        return []
    from modules.fleet.room_check import room_problems

    trees = {host.name: layers.settings(host.name) for host in hosts}
    return room_problems(hosts, trees, catalog, _lock_if_right(path))


def _lock_if_right(path: Path) -> Lock:
    """The lock, where that is right; one that is not is told after the fleet file."""
    try:
        return read_lock(path)
    except FleetError:
        return Lock()


def _but_for_strays(problems: list[Problem], strays: list[Problem]) -> list[Problem]:
    """Tell of a service that is probably another one's name that, and not that it lacks what the other one has."""
    services = {stray.origin.key for stray in strays}
    return [*strays, *(one for one in problems if one.what != "missing" or one.origin.key[:-1] not in services)]


def _host(name: str, layers: Layers, catalog: Catalog, folder: Path) -> tuple[ResolvedHost | None, list[Problem]]:
    ssh_tree, settings_tree = layers.ssh(name), layers.settings(name)
    ssh, settings = validated(Ssh, ssh_tree), validated(HostSettings, settings_tree)
    if isinstance(ssh, list) or isinstance(settings, list):
        return None, [problem for part in (ssh, settings) if isinstance(part, list) for problem in part]
    address = layers.address(name)
    problems = settings_problems(settings, address, catalog, settings_tree)
    resolver = Resolver(folder, settings.hardware.simulated)
    host = ResolvedHost.model_construct(
        name=name,
        address=address,
        ssh=resolver.ssh(ssh, ssh_tree),
        groups=layers.groups(name),
        settings=resolver.settings(settings, settings_tree),
    )
    return host, problems + resolver.problems
