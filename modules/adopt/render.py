"""Servers that run, as the text of a fleet file. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from modules.adopt.piece import Piece
from modules.importer.render import document_text

_SCHEMA = "# yaml-language-server: $schema=fleet.schema.json\n"
DEFAULT_HOME = "/var/lib/tinderbox/huggingface"


@dataclass(frozen=True)
class Found:
    """What a host showed. `unknown`: what is there and is none of ours' engines, in words."""

    host: str
    pieces: tuple[Piece, ...]
    unknown: tuple[str, ...] = ()


def settings_of(found: Found) -> dict[str, Any]:
    """A host's own settings: its services, and where their weights are used from."""
    services = {piece.name: dict(piece.service) for piece in found.pieces if piece.service is not None}
    settings: dict[str, Any] = {}
    if (home := home_of(found.pieces)) != DEFAULT_HOME:
        settings["weights"] = {"home": home}
    if services:
        settings["services"] = services
    return settings


def home_of(pieces: Iterable[Piece]) -> str:
    """The Hugging Face home of a host: that of the first server whose weights can be used from where they lie."""
    return next((piece.home for piece in pieces if piece.home is not None), DEFAULT_HOME)


def lines(found: Found) -> Iterator[str]:
    """What is said of a host: each server, how it becomes a service, what could not be carried over and why."""
    if not found.pieces and not found.unknown:
        yield f"{found.host}: no server of models runs there that Tinderbox knows"
    home = home_of(found.pieces)
    for piece in found.pieces:
        became = f"service {piece.name}" if piece.service is not None else "not described"
        yield f"{found.host}: {piece.server.named}: {became}"
        yield from (f"  {line}" for line in piece.told)
        if piece.weights is not None:
            yield f"  {_weights(piece, home)}"
    yield from (f"{found.host}: unknown, and not touched: {one}" for one in found.unknown)


def _weights(piece: Piece, home: str) -> str:
    assert piece.weights is not None
    name = f"weights: {piece.weights.repository} at {piece.weights.commit[:12]}"
    if piece.home == home:
        return f"{name} is used from where it lies, {home}"
    return f"{name} is brought from {piece.weights.cache.on_host} to {home}, by links where that is one filesystem"


def with_found(written: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]], told: Iterable[str]) -> str:
    """The fleet file `written`, as it was read, with what its hosts showed laid over it; `told` stands above.

    `found`: host → its `settings` and `secrets`. A service that the file gives the host itself is left as it is.
    """
    document = dict(written)
    secrets = {name: one for host in found.values() for name, one in host["secrets"].items()}
    secrets |= document.get("secrets") or {}
    hosts = {name: dict(host or {}) for name, host in document["hosts"].items()}
    for name, one in found.items():
        own = dict(hosts[name].get("settings") or {})
        for key, value in one["settings"].items():
            own[key] = {**value, **(own.get(key) or {})}
        if own:
            hosts[name]["settings"] = own
    if secrets:
        document["secrets"] = secrets
    document["hosts"] = hosts
    order = [*(key for key in document if key != "hosts"), "hosts"]
    above = "".join(f"# {line}".rstrip() + "\n" for line in told)
    return f"{_SCHEMA}{above}{document_text({key: document[key] for key in order})}"
