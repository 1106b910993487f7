"""What goes from a host when Tinderbox leaves it, what stays, and why. Pure: reads nothing, changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

ENGINE, IMAGES, WEIGHTS, SYSTEM, ACCESS = "engine", "images", "weights", "system", "access"
# In the order in which they go: what serves first, what it stands on last.
LAYERS = (ENGINE, IMAGES, WEIGHTS, SYSTEM, ACCESS)
# Without `access`: no removal locks its owner out who has not asked for that by name.
ALL = (ENGINE, IMAGES, WEIGHTS, SYSTEM)


@dataclass(frozen=True)
class Thing:
    """Something that Tinderbox has put on the host.

    `kind`, `name`: what it is; together they name it. `bytes`: what the disk gains, None: that is not known.
    `services`: ours that need it. `users`: who else does, and `because`: why it stays in any case, in words.
    `note`: what else is to be told. `data`: for who takes it away.
    """

    layer: str
    kind: str
    name: str
    bytes: int | None = None
    services: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    note: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """As it is told."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Stays:
    """A thing of a layer that was asked for, and why it stays."""

    layer: str
    title: str
    why: str


@dataclass(frozen=True)
class Plan:
    """`refused`: why nothing is done, None where something may be."""

    going: tuple[Thing, ...] = ()
    staying: tuple[Stays, ...] = ()
    refused: str | None = None

    def document(self) -> dict[str, Any]:
        """For the controller."""
        going = [{"layer": one.layer, "title": one.title, "bytes": one.bytes, "note": one.note} for one in self.going]
        return {"going": going, "staying": [asdict(one) for one in self.staying], "refused": self.refused}


def planned(things: Iterable[Thing], layers: Sequence[str], services: Sequence[str]) -> Plan:
    """What goes with these layers. `services`: those that the host has now."""
    here = set() if ENGINE in layers else set(services)
    if SYSTEM in layers and here:
        return Plan(
            refused=f"layer {SYSTEM} is what services stand on, and this host has {', '.join(sorted(here))}: "
            f"ask for layer {ENGINE}, too"
        )
    going, staying = [], []
    for thing in sorted(things, key=lambda one: LAYERS.index(one.layer)):
        if thing.layer not in layers:
            continue
        needed = [f"service {name} needs it" for name in thing.services if name in here]
        reasons = [*needed, *thing.users]
        if reasons:
            staying.append(Stays(thing.layer, thing.title, "; ".join(dict.fromkeys(reasons))))
        else:
            going.append(thing)
    return Plan(tuple(going), tuple(staying))


def unmerged(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """A daemon.json without what Tinderbox has put into it (docker_config.py); what was there before stands again.

    Keys that its owner has changed or added since stay.
    """
    had: Mapping[str, Any] = before or {}
    result = dict(now)
    ours: dict[str, dict[str, Any]] = {"runtimes": {"nvidia": _RUNTIME}, "features": {"buildkit": True}}
    for key, added in ours.items():
        inner = dict(result.get(key) or {})
        for name, value in added.items():
            if inner.get(name) == value and name not in (had.get(key) or {}):
                inner.pop(name)
        _put(result, key, inner, had)
    if result.get("log-driver") == "json-file":
        options = {name: value for name, value in (result.get("log-opts") or {}).items() if name not in _ROTATION}
        options |= {name: value for name, value in (had.get("log-opts") or {}).items() if name in _ROTATION}
        _put(result, "log-opts", options, had)
        if "log-driver" not in had:
            result.pop("log-driver")
    return result


_RUNTIME = {"args": [], "path": "nvidia-container-runtime"}
_ROTATION = ("max-size", "max-file")


def _put(result: dict[str, Any], key: str, inner: dict[str, Any], had: Mapping[str, Any]) -> None:
    if inner or key in had:
        result[key] = inner
    else:
        result.pop(key, None)
