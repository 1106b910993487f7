"""Prometheus' configuration: what it scrapes, by which rules it judges, and whom it tells."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import yaml

from modules.monitoring.rules import rules
from modules.monitoring.targets import Watched
from modules.monitoring.units import place
from modules.spec.monitoring import Alerts, Prometheus

HEAD = "# By Tinderbox, monitoring of the fleet file. The next run replaces what is edited here.\n"
CONFIGURATION, RULES, TARGETS, GATEWAYS = "prometheus.yml", "rules.yml", "targets.json", "gateways.json"


def configuration_files(prometheus: Prometheus, seen: Watched, alerts: Alerts) -> dict[str, str]:
    """Name → text of all files, which lie in one directory. Paths in them are relative to that."""
    return {CONFIGURATION: configuration_text(prometheus, seen), **site_files(seen, alerts)}


def site_files(seen: Watched, alerts: Alerts) -> dict[str, str]:
    """Those that a Prometheus of the site can take: rules, and targets for its own `file_sd_configs`."""
    gateways = {GATEWAYS: json.dumps(seen.gateway_targets(), indent=1) + "\n"} if seen.gateways else {}
    return {
        **gateways,
        RULES: HEAD + yaml.safe_dump(rules(seen, alerts), sort_keys=False, width=200, allow_unicode=True),
        TARGETS: json.dumps(seen.targets(), indent=1) + "\n",
    }


def configuration_text(prometheus: Prometheus, seen: Watched) -> str:
    """`prometheus.yml`."""
    every = f"{prometheus.scrape_s}s"
    own = "127.0.0.1" if prometheus.listen == "0.0.0.0" else prometheus.listen  # noqa: S104, compared with
    document: dict[str, Any] = {
        "global": {
            "scrape_interval": every,
            "evaluation_interval": every,
            "scrape_timeout": f"{min(prometheus.scrape_s, 10)}s",
        },
        "rule_files": [RULES],
        "scrape_configs": [
            scrape_config("tinderbox", TARGETS),
            *([scrape_config("tinderbox-gateway", GATEWAYS)] if seen.gateways else []),
            {"job_name": "prometheus", "static_configs": [{"targets": [place(own, prometheus.port)]}]},
        ],
    }
    if prometheus.alertmanagers:
        document["alerting"] = {"alertmanagers": [_alertmanager(url) for url in prometheus.alertmanagers]}
    return HEAD + yaml.safe_dump(document, sort_keys=False)


def scrape_config(job: str, targets: str) -> dict[str, Any]:
    """A job of the fleet. What a host tells of others (a fleet's drift, say) keeps those others' names."""
    return {"job_name": job, "honor_labels": True, "file_sd_configs": [{"files": [targets]}]}


def _alertmanager(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    path = {"path_prefix": parts.path} if parts.path not in {"", "/"} else {}
    return {"scheme": parts.scheme, **path, "static_configs": [{"targets": [parts.netloc]}]}
