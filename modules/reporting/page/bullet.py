"""One figure against the bounds of its gate, a published baseline and the last good release."""

from __future__ import annotations

from markupsafe import Markup

from modules.reporting.page.scale import Scale
from modules.reporting.page.svg import element, line, picture
from modules.reporting.report import MetricReport
from modules.reporting.wording import amount

WIDTH, HEIGHT = 260.0, 30.0
_TOP, _BOTTOM = 5.0, 25.0


def bullet(metric: MetricReport) -> Markup:
    """Zones of the gate, the measured bar with its spread, and marks for what it is compared with."""
    scale = Scale(0.0, _most(metric) * 1.06, 0.0, WIDTH)
    parts = [*_zones(metric, scale), *_bar(metric, scale), *_marks(metric, scale)]
    now = "not measured" if metric.now is None else f"{amount(metric.now.mean)} {metric.unit}"
    return picture(WIDTH, HEIGHT, f"{metric.title}: {now}", *parts, class_="bullet")


def _most(metric: MetricReport) -> float:
    bounds = metric.bounds
    readings = [reading.mean + reading.std for reading in (metric.now, metric.last_good) if reading is not None]
    fixed = [bounds.min, bounds.max, bounds.warn_min, bounds.warn_max, metric.published]
    return max([*readings, *(value for value in fixed if value is not None)], default=1.0) or 1.0


def _zones(metric: MetricReport, scale: Scale) -> list[Markup]:
    bounds = metric.bounds
    edges = [("fail", 0.0, bounds.min), ("warn", bounds.min or 0.0, bounds.warn_min)]
    upper = min((value for value in (bounds.max, bounds.warn_max) if value is not None), default=scale.high)
    lower = max((value for value in (bounds.min, bounds.warn_min) if value is not None), default=0.0)
    zones = [_zone(scale, lower, upper, "good")] if bounds.fixed else [_zone(scale, 0.0, scale.high, "track")]
    zones += [_zone(scale, start, end, kind) for kind, start, end in edges if end is not None and end > start]
    if bounds.warn_max is not None:
        zones.append(_zone(scale, bounds.warn_max, bounds.max if bounds.max is not None else scale.high, "warn"))
    if bounds.max is not None:
        zones.append(_zone(scale, bounds.max, scale.high, "fail"))
    return zones


def _zone(scale: Scale, start: float, end: float, kind: str) -> Markup:
    left, right = scale(start), scale(min(end, scale.high))
    return element("rect", x=left, y=_TOP, width=max(0.0, right - left), height=_BOTTOM - _TOP, class_=f"zone {kind}")


def _bar(metric: MetricReport, scale: Scale) -> list[Markup]:
    if metric.now is None:
        return []
    mean, std = metric.now.mean, metric.now.std
    return [
        element("rect", x=0.0, y=11.0, width=scale(mean), height=8.0, class_="now"),
        line(scale(max(0.0, mean - std)), 15.0, scale(mean + std), 15.0, "spread"),
    ]


def _marks(metric: MetricReport, scale: Scale) -> list[Markup]:
    marks = []
    if metric.last_good is not None:
        x = scale(metric.last_good.mean)
        marks.append(element("line", element("title", "last good"), x1=x, y1=3.0, x2=x, y2=27.0, class_="last-good"))
    if metric.baseline is not None:
        x = scale(metric.baseline.value)
        points = f"{x:.1f},1 {x + 5:.1f},7 {x:.1f},13 {x - 5:.1f},7"
        marks.append(element("polygon", element("title", "baseline"), points=points, class_="baseline"))
    return marks
