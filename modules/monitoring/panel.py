"""What a dashboard is made of: queries in panels, panels in rows."""

from __future__ import annotations

from dataclasses import dataclass

SERVICE = "{{host}} {{service}}"


@dataclass(frozen=True)
class Query:
    """PromQL and what its series are called."""

    expression: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One panel. `unit`: Grafana's name of it. `kind`: its plugin. `width`: of 24. `note`: what to know of it."""

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    note: str = ""
    most: float | None = None


@dataclass(frozen=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


def one(expression: str, legend: str = SERVICE) -> tuple[Query, ...]:
    """A panel's only query."""
    return (Query(expression, legend),)
