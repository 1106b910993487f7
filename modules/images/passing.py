"""Who makes an image, and who gets it from whom. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Passing:
    """`builder`: has the image, or makes it. `receivers`: those that get it from there; none: no transfer."""

    builder: str
    receivers: tuple[str, ...]


def passing(has: Mapping[str, bool], named: str | None) -> Passing:
    """Decide by which hosts have the image.

    `has`: host → whether the image is on it, for every host of the run that can be reached and needs it, in the fleet
    file's order; not empty. `named`: the builder that the fleet file names. A host that has the image spares everybody
    the making of it, so it comes first; among several, and where nobody has it, the named one, else the first.
    """
    choice = [host for host in has if has[host]] or list(has)
    builder = named if named in choice else choice[0]
    return Passing(builder, tuple(host for host in has if host != builder and not has[host]))


def common_builder(host: str, named: Mapping[str, str | None]) -> str | None:
    """The builder that a host shares with others, None where no one is named.

    `named`: host → the builder that it names. A host that others name belongs to them, also where it names nobody.
    """
    own = named[host]
    return own if own is not None else host if host in named.values() else None


def sharing(host: str, hosts: Iterable[str], named: Mapping[str, str | None]) -> list[str]:
    """Those of `hosts` that have their builder in common with `host`."""
    return [other for other in hosts if common_builder(other, named) == common_builder(host, named)]
