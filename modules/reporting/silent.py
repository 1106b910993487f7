"""Hosts that were asked and did not tell: kept as such, with why, so that reports show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from modules.fleet import Fleet
from modules.reporting.connection_advice import advice
from modules.reporting.host_errors import HostError
from modules.reporting.measured import ROOT
from modules.reporting.record import keep_host, load_host

NO_PROGRAM = "it has not this version of Tinderbox's programs yet: run stage site (deploys/site.py)"
_LONGEST = 300


def note_silent(
    fleet: Fleet, hosts: Iterable[str], errors: Mapping[str, Sequence[HostError]], root: Path = ROOT
) -> None:
    """Keep that these hosts did not tell how they are. Raises `OSError`: see `modules.reporting.record.keep`."""
    for name in hosts:
        note_trouble(fleet.name, name, why_silent(fleet, name, errors.get(name, ())), root)


def note_trouble(fleet: str, host: str, trouble: str, root: Path = ROOT) -> None:
    """Keep why a host did not tell; what it told before stays. Raises `OSError`: see `note_silent`."""
    keep_host(fleet, host, load_host(fleet, host, root).model_copy(update={"trouble": trouble}), root)


def why_silent(fleet: Fleet, host: str, errors: Sequence[HostError]) -> str:
    """The first error of the host, and what to do about it."""
    if not errors:
        return "it did not answer"
    said = errors[0]["said"].strip().splitlines()[0].removeprefix(f"{host}: ")[:_LONGEST]
    todo = advice(errors[0]["said"], fleet.hosts[host], fleet.path) if host in fleet.hosts else None
    return f"{said}: {todo}" if todo else said
