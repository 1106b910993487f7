"""A gate's measurement as a host has kept it → what is told of it on one line. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from modules.status.report import GateStatus

# A decode speed is what people ask for first.
_FIRST = "tg"


def gate_status(stored: Mapping[str, Any] | None) -> GateStatus | None:
    """None where nothing was measured. Its figure is the one that decided; of a pass, the decode speed."""
    if stored is None:
        return None
    judgement: Mapping[str, Any] = stored.get("judgement") or {}
    figures: Mapping[str, float] = judgement.get("figures") or {}
    lines: Sequence[Mapping[str, Any]] = judgement.get("lines") or ()
    verdict = str(judgement.get("verdict") or "not judged")
    decided = [line for line in lines if line.get("reason") and line.get("verdict") == verdict]
    names = [str(line["metric"]) for line in decided] or [
        *(name for name in figures if name.startswith(_FIRST)),
        *figures,
    ]
    metric = names[0] if names else None
    figure = figures.get(metric) if metric is not None else None
    return GateStatus(
        release=str(stored.get("release")),
        finished=str(stored["finished"]),
        verdict=verdict,
        metric=metric,
        figure=None if figure is None else float(figure),
        reason=str(decided[0]["reason"]) if decided else "",
    )
