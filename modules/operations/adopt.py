"""A server that runs on a host makes way for a service, or comes back in its place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Sequence

from pyinfra import host
from pyinfra.api import QuoteString, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.adopt.match import what_happens
from modules.adopt.piece import Piece
from modules.facts.predecessors import PROGRAM
from modules.operations.asked import operator
from modules.operations.differences import differs
from modules.operations.job import Job, run_job
from modules.operations.require import foreseen, unreadable
from modules.operations.weights import Wanted, is_settled, weights_there, wish_of
from modules.release import layout

_TIMEOUT_S = 6 * 3600


def record_of(piece: Piece, port: int) -> dict[str, object]:
    """What `predecessor.py choose` is told of a server; what it was made of the host finds out itself."""
    server = piece.server
    name = None if server.docker is None else server.docker["Name"].lstrip("/")
    return {
        "named": server.named, "kind": server.kind, "container": server.container, "name": name,
        "units": list(server.units), "pid": server.pid, "executed": server.executed, "port": port,
    }  # fmt: skip


def link_job(piece: Piece, home: str) -> Job:
    """The job that brings its weights to where ours lie."""
    assert piece.weights is not None
    weights = piece.weights
    words = ["--source", weights.cache.on_host, "--repository", weights.repository]
    words += ["--commit", weights.commit, "--home", home]
    command = (layout.PYTHON, str(layout.PROGRAMS / "link_weights.py"), *words)
    key = hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]
    return Job("weights-link", key, f"weights {weights.repository} from {weights.cache.on_host}", command, _TIMEOUT_S)


@operation()
def all_matched(trouble: Sequence[str]) -> Generator[PyinfraCommand, None, None]:
    """Refuse the host, in a dry run, too, where a service of it has nobody's place to take.

    + trouble: which, and why
    """
    if trouble:
        yield foreseen("\n".join(trouble) + "\nNothing was changed. What runs there: make adopt FLEET=…")
    else:
        host.noop("each does, or serves already")


@operation()
def weights_brought(piece: Piece, wanted: Wanted) -> Generator[PyinfraCommand, None, None]:
    """Have the weights of a server that runs where ours lie: not a byte is fetched for it.

    + piece: the server
    + wanted: the model, and where it is kept
    """
    state = weights_there(wanted).of(host)
    if state is None:
        yield from unreadable(f"the weights of {wanted.model.repository}")
        return
    if piece.home == wanted.weights.home or is_settled(wish_of(wanted), state):
        host.noop(f"{wanted.model.repository} lies in {wanted.weights.home}")
        return
    differs(f"weights {wanted.model.repository}", f"lie in {piece.weights.cache.on_host if piece.weights else ''}")
    yield from run_job(link_job(piece, wanted.weights.home))


@operation()
def predecessor_chosen(service: str, piece: Piece, port: int, home: str) -> Generator[PyinfraCommand, None, None]:
    """Note on the host which server makes way when the service starts, and comes back if that does not get ready.

    + service: its name
    + piece: the server
    + port: the service's
    + home: where weights are used from
    """
    told = what_happens(service, piece, home)
    host.log(told)
    differs(f"service {service}", f"takes a server's place: {told}")
    yield StringCommand(
        layout.PYTHON, PROGRAM, "choose", QuoteString(service), _stdin=json.dumps(record_of(piece, port))
    )


@operation()
def predecessor_back(service: str, named: str) -> Generator[PyinfraCommand, None, None]:
    """Have the server that ran before in the place of the service.

    + service: its name
    + named: the server, in words
    """
    differs(f"service {service}", f"makes way for {named}, which ran before it")
    host.log(f"{named} comes back; service {service} is stopped and disabled")
    yield StringCommand(layout.PYTHON, PROGRAM, "undo", QuoteString(service), QuoteString(operator()))
