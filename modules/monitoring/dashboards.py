"""Grafana's dashboards as JSON, out of rows of panels. Unverified: checked against Grafana's published schema alone."""

from __future__ import annotations

from typing import Any

from modules.monitoring.panel import Panel, Row
from modules.monitoring.panels import details, machine, overview, services, serving
from modules.monitoring.panels_gateway import gateway
from modules.monitoring.queries import FLEET, ONE_HOST

# Whichever Prometheus the Grafana that reads this has.
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_HEIGHT, _WIDE = 8, 24
# kinds/dashboard/dashboard_kind.cue of grafana/grafana: what this is written for. Newer ones read it and migrate it.
SCHEMA_VERSION = 36


def dashboards(fleet: str, *, with_gateway: bool = False) -> list[dict[str, Any]]:
    """All of them: the fleet, one host, and the gateway where there is one."""
    found = [
        _dashboard(
            "tinderbox-fleet", "Tinderbox: fleet", fleet,
            [overview(FLEET), serving(FLEET), machine(FLEET), services(FLEET)],
        ),
        _dashboard(
            "tinderbox-host", "Tinderbox: one host", fleet,
            [serving(ONE_HOST), machine(ONE_HOST), services(ONE_HOST), details(ONE_HOST)],
            host=True,
        ),
    ]  # fmt: skip
    return (
        [*found, _dashboard("tinderbox-gateway", "Tinderbox: gateway", fleet, [gateway(FLEET)])]
        if with_gateway
        else found
    )


def queries(dashboard: dict[str, Any]) -> list[tuple[str, str]]:
    """Title and expression of every query that a dashboard makes, its annotations' among them."""
    panels = [one for one in dashboard["panels"] if one["type"] != "row"]
    found = [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]
    return found + [(one["name"], one["expr"]) for one in dashboard["annotations"]["list"]]


def _dashboard(uid: str, title: str, fleet: str, rows: list[Row], *, host: bool = False) -> dict[str, Any]:
    of = ONE_HOST if host else FLEET
    variables = [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0},
        _variable("fleet", "label_values(tinderbox_simulated, fleet)", fleet),
    ]
    variables += [_variable("host", 'label_values(tinderbox_simulated{fleet="$fleet"}, host)', "")] if host else []
    return {
        "uid": uid,
        "title": title,
        "tags": ["tinderbox"],
        "style": "dark",
        "timezone": "browser",
        "editable": False,
        "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "templating": {"list": variables},
        "annotations": {"list": [_releases(of)]},
        "links": [],
        "panels": _panels(rows),
    }


def _releases(of: str) -> dict[str, Any]:
    """A mark at each moment at which a release was put in force."""
    return {
        "name": "Releases",
        "datasource": _SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": "blue",
        "expr": f"1000 * tinderbox_release_timestamp_seconds{{{of}}}"
        f" * on (fleet, host, service) group_left (release) tinderbox_release_info{{{of}}}",
        "useValueForTime": "on",
        "step": "60s",
        "titleFormat": "{{host}} {{service}}",
        "textFormat": "release {{release}}",
        "tagKeys": "host,service",
    }


def _variable(name: str, query: str, value: str) -> dict[str, Any]:
    current = {"current": {"text": value, "value": value, "selected": True}} if value else {}
    return {
        "name": name, "label": name, "type": "query", "datasource": _SOURCE, "query": query, "refresh": 2, "hide": 0,
        "multi": False, "includeAll": False, "skipUrlSync": False, "sort": 1, **current,
    }  # fmt: skip


def _panels(rows: list[Row]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    top = 0
    for row in rows:
        heading = {"x": 0, "y": top, "w": _WIDE, "h": 1}
        found.append(
            {
                "type": "row",
                "id": len(found) + 1,
                "title": row.title,
                "collapsed": False,
                "gridPos": heading,
                "panels": [],
            }
        )
        left, top, height = 0, top + 1, 0
        for panel in row.panels:
            if left + panel.width > _WIDE:
                left, top = 0, top + height
            height = 4 if panel.kind == "stat" else _HEIGHT
            found.append(_panel(panel, len(found) + 1, {"x": left, "y": top, "w": panel.width, "h": height}))
            left += panel.width
        top += height
    return found


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    limits = {"min": 0.0} | ({} if panel.most is None else {"max": panel.most})
    return {
        "type": panel.kind,
        "id": number,
        "title": panel.title,
        "description": panel.note,
        "transparent": False,
        "datasource": _SOURCE,
        "gridPos": place,
        "repeatDirection": "h",
        "transformations": [],
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "editorMode": "code",
                "expr": query.expression,
                "legendFormat": query.legend,
                "range": panel.kind != "stat",
                "instant": panel.kind == "stat",
            }
            for index, query in enumerate(panel.queries)
        ],
        "options": _OPTIONS[panel.kind],
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "noValue": "unknown", **limits, "custom": _CUSTOM[panel.kind]},
            "overrides": [],
        },
    }


_LEGEND = {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []}
_OPTIONS: dict[str, dict[str, Any]] = {
    "timeseries": {"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    "stat": {
        "reduceOptions": {"values": False, "calcs": ["lastNotNull"], "fields": ""}, "orientation": "auto",
        "textMode": "auto", "colorMode": "value", "graphMode": "none", "justifyMode": "auto",
    },
    "state-timeline": {
        "showValue": "never", "rowHeight": 0.9, "mergeValues": True, "alignValue": "left", "legend": _LEGEND,
        "tooltip": {"mode": "single", "sort": "none"},
    },
}  # fmt: skip
_CUSTOM: dict[str, dict[str, Any]] = {
    # A gap stays a gap: what is not known is no line.
    "timeseries": {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "spanNulls": False, "showPoints": "never"},
    "stat": {},
    "state-timeline": {"lineWidth": 0, "fillOpacity": 70, "spanNulls": False},
}
