"""Which of a host's servers a service of the fleet file takes over. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from modules.adopt.piece import Piece
from modules.spec.model import Model


@dataclass(frozen=True)
class Wish:
    """A service of the fleet file that is to take a server over."""

    name: str
    port: int
    model: Model


def paired(wishes: Sequence[Wish], pieces: Iterable[Piece]) -> dict[str, Piece]:
    """Service → the server whose place it takes: at its port, else the only one with its model that no other takes."""
    left = [piece for piece in pieces if piece.service is not None]
    found: dict[str, Piece] = {}
    for look in (_at_port, _alike):
        for wish in wishes:
            if wish.name not in found and (piece := look(wish, left)) is not None:
                found[wish.name] = piece
                left = [one for one in left if one is not piece]
    return found


def _at_port(wish: Wish, pieces: Sequence[Piece]) -> Piece | None:
    return next((one for one in pieces if one.service is not None and one.service["port"] == wish.port), None)


def _alike(wish: Wish, pieces: Sequence[Piece]) -> Piece | None:
    alike = [piece for piece in pieces if _repository(piece) == wish.model.repository]
    return alike[0] if len(alike) == 1 else None


def _repository(piece: Piece) -> str | None:
    assert piece.service is not None
    return str(piece.service["model"]["repository"])


def obstacle(piece: Piece) -> str | None:
    """Why a server is described and not taken over; None: nothing is in the way of it."""
    server = piece.server
    if server.user_unit:
        return f"{server.named} is a user's own: stop it there (systemctl --user disable --now), then make converge"
    if server.kind == "process":
        return (
            f"{server.named} was started by hand, and nothing would start it again as it was: stop it (kill "
            f"{server.pid}), then make converge"
        )
    if piece.weights is None:
        return (
            f"the weights of {_repository(piece)} were not found where {server.named} looks, so they would be fetched"
        )
    if piece.weights.cache.kind == "inside" and server.docker and server.docker["HostConfig"].get("AutoRemove"):
        return (
            f"its weights lie in {server.named} itself, which docker removes when it stops, so it could not come back "
            "without fetching them: run it with its cache in a folder of the host first"
        )
    return None


def what_happens(name: str, piece: Piece, home: str) -> str:
    """What a take-over does to a server, as it is shown before."""
    assert piece.weights is not None
    server, weights = piece.server, piece.weights
    used = "used from where they lie" if piece.home == home else f"brought from {weights.cache.on_host} to {home}"
    steps = [f"{server.named} is stopped, once all that service {name} needs is on the host"]
    if server.units:
        steps.append(f"{', '.join(server.units)} is disabled, and its file stays")
    elif server.docker is not None and server.docker["HostConfig"].get("AutoRemove"):
        steps.append("docker removes its container then, and what it was made of is kept")
    elif server.container is not None:
        steps.append("its container stays, and docker starts it no more by itself")
    steps.append(f"its weights are {used}, its image is used as it is" if server.docker else f"its weights are {used}")
    steps.append(f"where {name} does not get ready, it is started again")
    return "; ".join(steps)
