"""All that a host gets to be watched: its files, and what is to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from modules.fleet import HostPlan
from modules.hostside.configuration_digest import digest_of
from modules.monitoring.configuration import configuration_files
from modules.monitoring.exporter import SETTINGS_FILE, exporter_settings
from modules.monitoring.grafana import GRAFANA, grafana_files, grafana_unit
from modules.monitoring.targets import Watched
from modules.monitoring.units import (
    EXPORTER,
    NODE_EXPORTER,
    PROMETHEUS,
    drop_in_file,
    exporter_unit,
    node_exporter_drop_in,
    place,
    prometheus_drop_in,
    unit_file,
)


@dataclass(frozen=True)
class WatchPlan:
    """`files`: path → text, None for those that are to be absent; `secret_files`: of them, those of mode 600.

    `configuration`: name → text of Prometheus' files; empty where there is to be none. `asked_at`: URL at which node
    exporter answers.
    """

    files: dict[str, str | None]
    secret_files: frozenset[str] = frozenset()
    configuration: Mapping[str, str] = field(default_factory=dict)
    running: tuple[str, ...] = ()
    asked_at: str | None = None

    def wish(self, *, whole: bool = False) -> dict[str, object]:
        """What `monitoring_settings.py` is given. `whole`: with the files of Prometheus' configuration."""
        prometheus: dict[str, object] | None = None
        if self.configuration:
            prometheus = {"digest": digest_of(self.configuration)} | ({"files": self.configuration} if whole else {})
        return {
            "exporter": EXPORTER in self.running,
            "node_exporter": NODE_EXPORTER in self.running,
            "grafana": GRAFANA in self.running,
            "prometheus": prometheus,
            "asked_at": self.asked_at,
        }


def watch_plan(plan: HostPlan, seen: Watched, admin_password: str | None) -> WatchPlan:
    """What this host gets. `seen`: the fleet, as its Prometheus sees it. Nothing asked for: nothing is to be left."""
    wish = plan.settings.monitoring
    exporters, prometheus, grafana = wish.exporters, wish.prometheus, wish.grafana
    node_exporter = exporters is not None and exporters.node_exporter
    addresses = [service.service.listen for service in plan.services]
    files: dict[str, str | None] = {
        unit_file(EXPORTER): None if exporters is None else exporter_unit(exporters, addresses),
        SETTINGS_FILE: None if exporters is None else exporter_settings(plan),
        drop_in_file(NODE_EXPORTER): node_exporter_drop_in(exporters) if exporters and node_exporter else None,
        drop_in_file(PROMETHEUS): None if prometheus is None else prometheus_drop_in(prometheus, peers_of(plan, seen)),
        unit_file(GRAFANA): None if grafana is None else grafana_unit(grafana),
        **grafana_files(None if grafana is None else prometheus, seen, admin_password),
    }
    running = {EXPORTER: exporters is not None, NODE_EXPORTER: node_exporter, PROMETHEUS: prometheus is not None}
    running[GRAFANA] = grafana is not None
    asked_at = None
    if exporters is not None and node_exporter:
        own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(exporters.listen, exporters.listen)  # noqa: S104
        asked_at = f"http://{place(own, exporters.port)}/metrics"
    return WatchPlan(
        files=files,
        secret_files=frozenset(path for path in files if path.endswith(".secret.env")),
        configuration={} if prometheus is None else configuration_files(prometheus, seen, wish.alerts),
        running=tuple(name for name, wanted in running.items() if wanted),
        asked_at=asked_at,
    )


def peers_of(plan: HostPlan, seen: Watched) -> list[str]:
    """Addresses that Prometheus speaks to: the targets', and those of alertmanagers."""
    prometheus = plan.settings.monitoring.prometheus
    asked = [*(host.target for host in seen.hosts), *seen.gateways.values()]
    targets = [target.rpartition(":")[0].strip("[]") for target in asked]
    urls = prometheus.alertmanagers if prometheus is not None else ()
    return targets + [url.partition("://")[2].partition("/")[0].rpartition(":")[0].strip("[]") for url in urls]
