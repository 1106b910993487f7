"""Where in a fleet file a key has its place, for one that stands in another."""

from __future__ import annotations

from functools import cache

from pydantic import BaseModel

from modules.spec.fleet import FleetFile, Host, Ssh
from modules.spec.gateway import Gateway, Limits
from modules.spec.settings import HostSettings, Service
from modules.spec.strategy import Strategy

_SETTINGS = "under defaults, a group, or a host's settings"
_PLACES: tuple[tuple[type[BaseModel], str], ...] = (
    (FleetFile, "at the top of the file"),
    (Host, "in a host's own entry, beside its settings"),
    (HostSettings, _SETTINGS),
    (Strategy, "under strategy, which stands at the top of the file"),
    (Gateway, f"under gateway, which stands {_SETTINGS}"),
    (Limits, "under gateway.limits"),
    (Service, f"in a service, under services, which stands {_SETTINGS}"),
    (Ssh, "under ssh, which stands at the top of the file or in a host's own entry"),
)
_OUTER = 3
# A word that means something in more places than that says nothing of what is meant.
_MOST = 2


@cache
def place_of(word: str, read_as: type[BaseModel]) -> str | None:
    """Where a key of this name belongs, outermost; None where none has it, or too many have.

    `read_as`: what was read; of another thing than a fleet file (a lock, a catalog's entry) nothing is known here.
    """
    if read_as not in {FleetFile, HostSettings}:
        return None
    for models in (_PLACES[:_OUTER], _PLACES[_OUTER:]):
        places = [place for model, place in models if word in model.model_fields]
        if places:
            return " or ".join(places) if len(places) <= _MOST else None
    return None
