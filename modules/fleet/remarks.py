"""What is odd in a fleet file, and may be right all the same: told, never refused."""

from __future__ import annotations

from collections.abc import Iterator

from modules.catalog import Catalog
from modules.fleet.problem import Problem
from modules.fleet.suggest import nearest
from modules.fleet.tree import Tree, find
from modules.spec.engine import KnownFlags
from modules.spec.settings import HostSettings, Service


def settings_remarks(settings: HostSettings, catalog: Catalog, tree: Tree) -> Iterator[Problem]:
    """Tell of flags and values that the catalog does not know of an engine. `tree`: the settings', for their places.

    Only where the image is the engine's own: another may be of a version whose flags nobody here has read.
    """
    for name, service in settings.services.items():
        engine = catalog.engines.get(service.engine)
        if engine is None or service.image.recipe not in (None, engine.recipe):
            continue
        for flag, what, todo in _odd_flags(service, catalog.flags[service.engine]):
            yield Problem(find(tree, ("services", name, "flags", flag)).origin, what, todo)


def _odd_flags(service: Service, known: KnownFlags) -> Iterator[tuple[str, str, str]]:
    for flag, value in service.flags.items():
        if value is False:
            continue
        if not known.knows(flag):
            first = flag.partition(".")[0]
            meant = known.short.get(first) or nearest(first, known.names)
            what = f"the catalog knows no flag --{flag} of engine {service.engine}"
            yield flag, what, f"{_meant(meant)}the image is asked before anything is restarted"
        values = known.values.get(flag)
        if values is not None and isinstance(value, str) and value not in values:
            meant = nearest(value, values)
            what = f"the catalog knows no {value!r} for --{flag} of engine {service.engine}"
            yield flag, what, f"{_meant(meant)}the engine decides when it starts"


def _meant(word: str | None) -> str:
    return "" if word is None else f"did you mean {word}? "
