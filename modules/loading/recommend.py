"""Which load format an engine should have, by what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from modules.loading.ways import SETTINGS, UNSET, DeviceWays, Setting, WayFigures
from modules.spec.engine import FlagValue

# A smaller gain is not worth another setting.
NOTHING = 0.10
_GB = 1e9


@dataclass(frozen=True)
class Recommendation:
    """`way`: of `load_ways.py`. `change`: whether the engine takes another one now. `reason`: the figures, in words."""

    way: str
    setting: Setting
    change: bool
    reason: str


def taken_now(flags: Mapping[str, FlagValue], environment: Mapping[str, str]) -> str | None:
    """The way that an engine takes by its flags and environment; None: one that is not measured."""
    load_format = str(flags.get("load-format", "auto"))
    load_format = "safetensors" if load_format == "auto" else load_format
    fits = [
        name
        for name, setting in SETTINGS.items()
        if setting.load_format == load_format
        and all(_value(environment, variable) == value for variable, value in setting.environment.items())
    ]
    # The one that says most: those with more variables are special cases of those with fewer.
    return max(fits, key=lambda name: len(SETTINGS[name].environment), default=None)


def recommend(
    found: DeviceWays, flags: Mapping[str, FlagValue], environment: Mapping[str, str]
) -> Recommendation | None:
    """The way that is fastest from the disk; of those that are as good, the fastest from memory, and what is set now.

    None where none of the ways that an engine can be told to take was measured.
    """
    measured = {name: found.ways[name] for name in SETTINGS if name in found.ways and found.ways[name].measured}
    if not measured:
        return None
    now = taken_now(flags, environment)
    as_good = _as_good(measured, lambda each: each.cold)
    best = [*_as_good(as_good, lambda each: each.warm)]
    way = now if now in best else best[0]
    said = f"{way}: {_figures(measured[way])}"
    if now is not None and now != way:
        said += f"; now {now}: {_figures(measured[now]) if now in measured else 'not measured'}"
    return Recommendation(way, SETTINGS[way], way != now, said)


def _value(environment: Mapping[str, str], variable: str) -> str | None:
    return environment.get(variable, UNSET.get(variable))


def _as_good(
    ways: Mapping[str, WayFigures], rounds: Callable[[WayFigures], tuple[float, ...]]
) -> dict[str, WayFigures]:
    """The best, and those whose best round is not clearly below its worst."""
    best = min(rounds(max(ways.values(), key=lambda each: median(rounds(each)))))
    found = {name: each for name, each in ways.items() if max(rounds(each)) >= best * (1 - NOTHING)}
    return dict(sorted(found.items(), key=lambda item: median(rounds(item[1])), reverse=True))


def _figures(each: WayFigures) -> str:
    return f"{each.cold_rate / _GB:.2f} GB/s from the disk, {each.warm_rate / _GB:.2f} from memory"


def shown_ways(found: DeviceWays) -> list[str]:
    """A line for each way, for people."""
    lines = [f"to {found.device}, {found.bytes / _GB:.1f} GB in {found.files} files, GB/s from the disk / from memory:"]
    for name, each in found.ways.items():
        if each.error is not None:
            lines.append(f"  {name}: {each.error}")
        elif not each.measured:
            lines.append(f"  {name}: the page cache could not be emptied; its figures say nothing")
        else:
            lines.append(f"  {name}: {each.cold_rate / _GB:.2f} / {each.warm_rate / _GB:.2f}")
    return lines
