"""What was sampled once a second while a workload ran."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from markupsafe import Markup

from modules.gating.series import title_of, unit_of_series
from modules.reporting.page.history import amount_of_tick
from modules.reporting.page.scale import Scale
from modules.reporting.page.svg import element, line, picture, text
from modules.reporting.report import Series

WIDTH, HEIGHT = 360.0, 118.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 348.0, 30.0, 98.0
# Nobody asks how far a temperature is from zero.
_NOT_FROM_ZERO = ("temperature_c",)


def telemetry_plot(name: str, series: Series) -> Markup | None:
    """A curve with gaps where nothing could be read, or None where nothing was."""
    known = [value for value in series if value is not None and math.isfinite(value)]
    if not known:
        return None
    xs = Scale(0, max(1, len(series) - 1), _LEFT, _RIGHT)
    ys = _vertical(name, known)
    middle, unit = statistics.median(known), unit_of_series(name)
    title = title_of(name)
    parts = [
        text(0.0, 14.0, title[:1].upper() + title[1:], class_="title"),
        text(_RIGHT, 14.0, f"{round(middle, 1):g} {unit}".rstrip(), class_="title", anchor="end"),
        *(line(_LEFT, ys(value), _RIGHT, ys(value), "grid") for value in ys.ticks(2)),
        *(text(_LEFT - 6, ys(value) + 4, amount_of_tick(value), anchor="end") for value in ys.ticks(2)),
        *(element("polyline", points=points, class_="series") for points in _curves(series, xs, ys)),
        text(_LEFT, 114.0, "0 s"),
        text(_RIGHT, 114.0, f"{len(series)} s", anchor="end"),
    ]
    return picture(WIDTH, HEIGHT, f"{title} over {len(series)} seconds, middle {middle:g} {unit}".rstrip(), *parts)


def _vertical(name: str, known: Sequence[float]) -> Scale:
    low, high = min(known), max(known)
    low = low - 0.1 * (high - low) - 1 if name in _NOT_FROM_ZERO else min(0.0, low)
    high = high + 0.05 * (high - low)
    return Scale(low, high if high > low else low + 1.0, _BOTTOM, _TOP)


def _curves(series: Series, xs: Scale, ys: Scale) -> list[str]:
    """The curve's pieces between gaps; a sample alone between two gaps is drawn as a short dash."""
    pieces: list[list[str]] = [[]]
    for index, value in enumerate(series):
        if value is None or not math.isfinite(value):
            pieces.append([])
        else:
            pieces[-1].append(f"{xs(index):.1f},{ys(value):.1f}")
    return [" ".join(piece if len(piece) > 1 else piece * 2) for piece in pieces if piece]
