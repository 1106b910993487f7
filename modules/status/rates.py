"""Two looks at an engine's counters → what it does now. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Below, a difference of two looks is no rate.
_SHORTEST_S = 0.05
Figures = Mapping[str, float | None]


def rates(samples: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """The fields of a service's status that the engine tells; those that can not be told are left out.

    One that was started again between the looks counts from zero: its rate is unknown.
    """
    looks = [one for one in samples if one is not None]
    if not looks:
        return {}
    newest: Figures = looks[-1]["figures"]
    told = {
        "running": _whole(newest.get("requests_running")),
        "waiting": _whole(newest.get("requests_waiting")),
        "kv_percent": newest.get("kv_usage_percent"),
    }
    if len(looks) > 1 and (window := float(looks[1]["at"]) - float(looks[0]["at"])) > _SHORTEST_S:
        before: Figures = looks[0]["figures"]
        told |= {
            "window_s": round(window, 3),
            "tokens_s": _rate(before, newest, "generation_tokens", window),
            "prompt_tokens_s": _rate(before, newest, "prompt_tokens", window),
        }
    return told


def _rate(before: Figures, after: Figures, name: str, window: float) -> float | None:
    old, new = before.get(name), after.get(name)
    return None if old is None or new is None or new < old else round((new - old) / window, 1)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
