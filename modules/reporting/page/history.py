"""A metric over the releases of a service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from modules.gating.judgement import Verdict
from modules.reporting.page.scale import Scale
from modules.reporting.page.svg import element, line, picture, text
from modules.reporting.report import HistoryPoint, MetricReport, Reading
from modules.reporting.wording import amount

WIDTH, HEIGHT = 360.0, 170.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 348.0, 18.0, 140.0
# Noise within this share of the middle should not look like a mountain range.
_LEAST_SPAN = 0.12


@dataclass(frozen=True)
class _Plotted:
    x: float
    point: HistoryPoint
    reading: Reading


def history_plot(metric: MetricReport, history: Sequence[HistoryPoint]) -> Markup | None:
    """Mean and spread of every measurement that has the metric, or None with fewer than two."""
    known = [point for point in history if metric.name in point.readings]
    if len(known) < 2:
        return None
    xs = Scale(0, len(known) - 1, _LEFT + 14, _RIGHT - 10)
    plotted = [_Plotted(xs(index), point, point.readings[metric.name]) for index, point in enumerate(known)]
    ys = _vertical(metric, plotted)
    first, last = _span(known[0].measured, known[-1].measured)
    parts = [
        *_grid(ys),
        *_bounds(metric, plotted, ys),
        _curve(plotted, ys),
        *(_point(one, ys, metric.unit) for one in plotted),
        text(_LEFT, 162.0, first),
        text(_RIGHT, 162.0, last, anchor="end"),
    ]
    label = f"{metric.title} over {len(known)} measurements, {metric.unit}"
    return picture(WIDTH, HEIGHT, label, *parts)


def _vertical(metric: MetricReport, plotted: Sequence[_Plotted]) -> Scale:
    low = min(one.reading.mean - one.reading.std for one in plotted)
    high = max(one.reading.mean + one.reading.std for one in plotted)
    near = [metric.bounds.min, metric.bounds.max, metric.published]
    for value in near:
        # A floor far below would press the whole history into one line.
        if value is not None and 0.6 * low <= value <= 1.6 * high:
            low, high = min(low, value), max(high, value)
    middle, span = (low + high) / 2, high - low
    half = max(span, _LEAST_SPAN * middle) / 2 * 1.15
    return Scale(max(0.0, middle - half), middle + half, _BOTTOM, _TOP)


def _grid(ys: Scale) -> list[Markup]:
    return [
        part
        for value in ys.ticks()
        for part in (
            line(_LEFT, ys(value), _RIGHT, ys(value), "grid"),
            text(_LEFT - 6, ys(value) + 4, amount_of_tick(value), anchor="end"),
        )
    ]


def _span(first: str, last: str) -> tuple[str, str]:
    """Days, or times where it is all of one day."""
    return (first[11:16], last[11:16]) if first[:10] == last[:10] else (first[:10], last[:10])


def amount_of_tick(value: float) -> str:
    """Without decimals that are zero; thousands as k, since there is little room."""
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    return amount(value).removesuffix(".00").removesuffix(".0")


def _bounds(metric: MetricReport, plotted: Sequence[_Plotted], ys: Scale) -> list[Markup]:
    """The gate's bound and the published figure, each named on the side that the other is not on."""
    floor = metric.bounds.min if metric.bounds.min is not None else metric.bounds.max
    above, below = -4.0, 13.0
    bound_at, baseline_at = (above, below) if metric.lower_is_better else (below, above)
    marks = ((floor, "fails", "fail-line", bound_at), (metric.published, "baseline", "baseline-line", baseline_at))
    parts: list[Markup] = []
    for value, words, class_, name_at in marks:
        if value is not None and ys.low <= value <= ys.high:
            y, (x, anchor) = ys(value), _free_end(ys(value), plotted, ys)
            parts.append(line(_LEFT, y, _RIGHT, y, class_))
            # Below a line at the bottom stand the days.
            beside = above if y + name_at > _BOTTOM else name_at
            parts.append(text(x, y + beside, words, class_=f"label {class_}", anchor=anchor))
    return parts


def _free_end(y: float, plotted: Sequence[_Plotted], ys: Scale) -> tuple[float, str]:
    """That end of a level line where the curve is farther away."""
    first, last = (abs(ys(one.reading.mean) - y) for one in (plotted[0], plotted[-1]))
    return (_LEFT + 2, "start") if first > last else (_RIGHT, "end")


def _curve(plotted: Sequence[_Plotted], ys: Scale) -> Markup:
    points = " ".join(f"{one.x:.1f},{ys(one.reading.mean):.1f}" for one in plotted)
    return element("polyline", points=points, class_="curve")


def _point(one: _Plotted, ys: Scale, unit: str) -> Markup:
    y, reading = ys(one.reading.mean), one.reading
    words = f"{one.point.release}, {one.point.measured[:16].replace('T', ' ')} UTC: "
    words += f"{amount(reading.mean)} ± {amount(reading.std)} {unit}, {one.point.verdict}"
    low, high = max(ys.low, reading.mean - reading.std), min(ys.high, reading.mean + reading.std)
    whisker = line(one.x, ys(low), one.x, ys(high), "spread")
    return element("g", element("title", words), whisker, _marker(one.x, y, one.point.verdict))


def _marker(x: float, y: float, verdict: Verdict) -> Markup:
    """By shape as well as by colour."""
    class_ = f"marker {verdict.lower()}"
    if verdict is Verdict.PASS:
        return element("circle", cx=x, cy=y, r=4.0, class_=class_)
    if verdict is Verdict.WARN:
        corners = f"{x:.1f},{y - 5:.1f} {x + 5:.1f},{y + 4:.1f} {x - 5:.1f},{y + 4:.1f}"
        return element("polygon", points=corners, class_=class_)
    cross = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
    return element("path", d=cross, class_=class_)
