"""Servers that already run: described, taken over, given back. By what is asked: TINDERBOX_ADOPT (docs/adopt.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pyinfra import host
from pyinfra.api import deploy

from modules.adopt.match import Wish, obstacle, paired
from modules.adopt.piece import Piece, pieces_of
from modules.adopt.render import Found, lines, settings_of
from modules.catalog import load_catalog
from modules.facts.predecessors import Predecessors
from modules.facts.releases import HostReleases
from modules.facts.servers import RunningServers
from modules.fleet import HostPlan, ServicePlan
from modules.importer.render import document_text
from modules.operations.adopt import all_matched, predecessor_back, predecessor_chosen, weights_brought
from modules.operations.adopting import note_taking
from modules.operations.asked import adopt_found, asked_service
from modules.operations.weights import Wanted


@dataclass(frozen=True)
class Taken:
    """Each service of a host with the server whose place it is to take. `trouble`: why nothing is taken over."""

    pairs: tuple[tuple[ServicePlan, Piece], ...] = ()
    trouble: tuple[str, ...] = ()

    @property
    def bare(self) -> bool:
        """Whether servers are taken over, and none that a restart of dockerd would end."""
        return bool(self.pairs) and all(piece.server.container is None for _, piece in self.pairs)


def described(plan: HostPlan) -> None:
    """Say what runs on the host, as a fleet file would have it. Changes nothing."""
    found = _found(plan)
    if found is None:
        return
    folder = adopt_found()
    if folder is not None:
        secrets = {name: one for piece in found.pieces for name, one in piece.secrets.items()}
        told = {"settings": settings_of(found), "secrets": secrets, "lines": list(lines(found))}
        Path(folder, f"{host.name}.json").write_text(json.dumps(told), encoding="utf-8")
        return
    for line in lines(found):
        host.log(line)
    if settings := settings_of(found):
        for line in document_text({"settings": settings}).splitlines():
            host.log(line)


def _found(plan: HostPlan) -> Found | None:
    seen = host.get_fact(RunningServers)
    if seen is None:
        return None  # it has failed by that
    return Found(plan.name, tuple(pieces_of(seen.servers, load_catalog())), seen.unknown)


def to_take(plan: HostPlan) -> Taken:
    """Find the server that each service of the host takes over; those that Tinderbox serves already are left alone."""
    found, there = _found(plan), host.get_fact(HostReleases) or {}
    if found is None:
        return Taken(trouble=(f"{host.name}: what runs there could not be read; the lines above say why",))
    pairs, trouble = [], []
    serving = {name for name, one in there.items() if one is not None and one.active == "active"}
    to_come = [service for service in plan.services if service.name not in serving]
    places = paired([Wish(one.name, one.service.port, one.model) for one in to_come], found.pieces)
    for service in to_come:
        piece = places.get(service.name)
        if piece is None:
            trouble.append(
                f"{host.name}: service {service.name}: no server that Tinderbox knows runs at port "
                f"{service.service.port} or with {service.model.repository}, so there is nothing to take over: "
                "make converge deploys it"
            )
        elif why := obstacle(piece):
            trouble.append(f"{host.name}: service {service.name}: {why}")
        else:
            pairs.append((service, piece))
    taken = Taken(tuple(pairs), tuple(trouble))
    if pairs and not trouble:
        note_taking(host)
    return taken


@deploy("Adopt")
def checked(plan: HostPlan, taken: Taken) -> None:
    """Refuse the host, with nothing changed, where a service of it has nobody's place to take."""
    none = () if plan.services else (f"{host.name}: the fleet file gives it no service",)
    all_matched(name="Each service takes a server's place", trouble=[*none, *taken.trouble])


@deploy("Adopted weights")
def brought(plan: HostPlan, taken: Taken) -> None:
    """Have the weights of these servers where ours lie; those that are used from where they lie are left there."""
    settings = plan.settings
    for service, piece in host.loop(list(taken.pairs)):
        weights_brought(
            name=f"Weights of {service.name} from {piece.server.named}",
            piece=piece,
            wanted=Wanted(service.model, settings.weights, settings.hardware.reserve_disk_gib),
        )


@deploy("Adopt")
def chosen(plan: HostPlan, taken: Taken) -> None:
    """Note which servers make way; they do when the service is started, by the same job."""
    for service, piece in host.loop(list(taken.pairs)):
        predecessor_chosen(
            name=f"{service.name} takes the place of {piece.server.named}",
            service=service.name,
            piece=piece,
            port=service.service.port,
            home=plan.settings.weights.home,
        )


@deploy("Give back")
def given_back(plan: HostPlan) -> None:
    """Have the servers back in whose places services are: the named service's, else all of the host's."""
    del plan
    there = host.get_fact(Predecessors) or {}
    name = asked_service()
    wanted = [each for each, one in there.items() if name in {None, each} and one["state"] != "back"]
    for each in host.loop(wanted):
        predecessor_back(name=f"What ran before {each}", service=each, named=there[each]["named"])
