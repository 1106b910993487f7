"""Dashboards against Grafana's published schema, and their queries against what is really told.

The models below are what `kinds/dashboard/dashboard_kind.cue` of grafana/grafana asks of a dashboard, a panel and what
they hold, as far as ours use it; a key that it does not know is an error. No Grafana has read them: unverified.
"""

# Grafana's own names.
# ruff: noqa: N815

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from modules.monitoring.dashboards import SCHEMA_VERSION, dashboards, queries
from modules.monitoring.grafana import dashboard_texts
from modules.monitoring.targets import Watched

HOSTSIDE = Path(__file__).parents[2] / "modules" / "hostside"
SAMPLES = Path(__file__).parents[1] / "samples"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Source(Strict):
    type: str
    uid: str


class GridPos(Strict):
    h: int = Field(gt=0)
    w: int = Field(gt=0, le=24)
    x: int = Field(ge=0, lt=24)
    y: int = Field(ge=0)


class Target(Strict):
    """Of the Prometheus datasource (packages/grafana-schema, PrometheusDataQuery)."""

    refId: str = Field(pattern="^[A-Z]$")
    datasource: Source
    editorMode: Literal["code", "builder"]
    expr: str = Field(min_length=1)
    legendFormat: str
    range: bool
    instant: bool


class Defaults(Strict):
    unit: str
    noValue: str
    min: float
    max: float | None = None
    custom: dict[str, Any]


class FieldConfig(Strict):
    defaults: Defaults
    overrides: list[Any]


class Panel(Strict):
    type: Literal["timeseries", "stat", "state-timeline"]
    id: int = Field(gt=0)
    title: str = Field(min_length=1)
    description: str
    transparent: bool
    datasource: Source
    gridPos: GridPos
    repeatDirection: Literal["h", "v"]
    transformations: list[Any]
    targets: list[Target] = Field(min_length=1)
    options: dict[str, Any]
    fieldConfig: FieldConfig


class RowPanel(Strict):
    type: Literal["row"]
    id: int = Field(gt=0)
    title: str
    collapsed: bool
    gridPos: GridPos
    panels: list[Panel]


class Current(Strict):
    text: str
    value: str
    selected: bool


class Variable(Strict):
    name: str
    label: str
    type: Literal["query", "datasource"]
    query: str
    hide: Literal[0, 1, 2]
    datasource: Source | None = None
    refresh: Literal[0, 1, 2] = 0
    multi: bool = False
    includeAll: bool = False
    skipUrlSync: bool = False
    sort: int = 0
    current: Current | None = None


class Annotation(Strict):
    name: str
    datasource: Source
    enable: bool
    hide: bool
    iconColor: str
    expr: str
    useValueForTime: Literal["on"]
    step: str
    titleFormat: str
    textFormat: str
    tagKeys: str


class Templating(Strict):
    list: list[Variable]


class Annotations(Strict):
    list: list[Annotation]


class Dashboard(Strict):
    uid: str = Field(min_length=8, max_length=40)
    title: str
    tags: list[str]
    style: Literal["light", "dark"]
    timezone: str
    editable: bool
    graphTooltip: Literal[0, 1, 2]
    time: dict[Literal["from", "to"], str]
    refresh: str
    schemaVersion: int
    templating: Templating
    annotations: Annotations
    links: list[Any]
    panels: list[Annotated[Panel | RowPanel, Field(discriminator="type")]]


ALL = dashboards("office", with_gateway=True)


@pytest.mark.parametrize("document", ALL, ids=lambda one: str(one["uid"]))
def test_a_dashboard_is_as_grafanas_schema_has_it(document: dict[str, Any]) -> None:
    found = Dashboard.model_validate(document)
    assert found.schemaVersion == SCHEMA_VERSION
    ids = [panel.id for panel in found.panels]
    assert len(ids) == len(set(ids))
    variables = {variable.name for variable in found.templating.list}
    used = {name for _, text in queries(document) for name in re.findall(r"\$(\w+)", text)} - {"__rate_interval"}
    assert used | {"datasource"} == variables
    for panel in found.panels:
        if isinstance(panel, Panel):
            assert [target.refId for target in panel.targets] == sorted({target.refId for target in panel.targets})


@pytest.mark.parametrize("document", ALL, ids=lambda one: str(one["uid"]))
def test_no_two_panels_lie_on_each_other(document: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in document["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells


@pytest.mark.parametrize("document", ALL, ids=lambda one: str(one["uid"]))
def test_every_name_in_a_query_is_one_that_somebody_tells(document: dict[str, Any]) -> None:
    engines = [path.read_text() for path in SAMPLES.glob("*-metrics.txt")]
    told = set(re.findall(r"\btinderbox_\w+", "".join(path.read_text() for path in HOSTSIDE.glob("*_metrics.py"))))
    told |= {"tinderbox_expected_host", "tinderbox_expected_service"}  # recorded by our own rules
    told |= {name for text in engines for name in re.findall(r"^([a-z]+:\w+)", text, re.MULTILINE)}
    # Told by versions before September 2025 alone.
    told |= {"llamacpp:kv_cache_usage_ratio"}
    for title, expression in queries(document):
        for name in re.findall(r"\b(?:tinderbox_\w+|(?:vllm|sglang|llamacpp):\w+)", expression):
            assert name in told, f"{title}: {name}"


def test_each_dashboard_is_one_file_for_grafana() -> None:
    assert sorted(dashboard_texts(Watched("office", ()))) == ["tinderbox-fleet.json", "tinderbox-host.json"]
    with_one = Watched("office", (), {"spark-1": "127.0.0.1:8405"})
    assert "tinderbox-gateway.json" in dashboard_texts(with_one)


def test_what_is_asked_for_is_shown() -> None:
    titles = {title for document in ALL for title, _ in queries(document)}
    assert titles >= {
        "Generated tokens", "Prompt tokens", "TTFT", "Inter-token latency", "KV cache in use", "Requests", "Power",
        "SM clock", "Temperature", "Memory", "Restarts", "Releases", "Gate: figure over its bound",
    }  # fmt: skip
