"""What the dashboards show of the fleet's one endpoint."""

from __future__ import annotations

from modules.monitoring.panel import Panel, Row, one


def gateway(of: str) -> Row:
    """HAProxy's own exporter, on the host that has the fleet's gateway."""
    return Row(
        "Gateway",
        (
            Panel(
                "Sparks that take requests",
                one(f'haproxy_server_status{{{of}, state="UP"}}', "{{proxy}} {{server}}"),
                kind="state-timeline",
                width=12,
            ),
            Panel("Sessions", one(f"haproxy_server_current_sessions{{{of}}}", "{{proxy}} {{server}}"), width=12),
            Panel(
                "Answers",
                one(
                    f"sum by (proxy, code) (rate(haproxy_server_http_responses_total{{{of}}}[$__rate_interval]))",
                    "{{proxy}} {{code}}",
                ),
                "reqps",
                width=12,
            ),
            Panel("Waiting", one(f"haproxy_server_current_queue{{{of}}}", "{{proxy}} {{server}}"), width=12),
        ),
    )
