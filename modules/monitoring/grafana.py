"""Grafana: its unit, its datasource and its dashboards. Unverified: no image of it can be had in the lab."""

from __future__ import annotations

import json

import yaml

from modules.monitoring.dashboards import dashboards
from modules.monitoring.targets import Watched
from modules.monitoring.units import place
from modules.release import layout
from modules.release.container import DOCKER
from modules.release.unit import word
from modules.spec.monitoring import Grafana, Prometheus

GRAFANA = "tinderbox-grafana"
_FOLDER = layout.SETTINGS / "grafana"
SECRETS = str(layout.SETTINGS / "grafana.secret.env")
DATASOURCE = "tinderbox"
_INSIDE = "/etc/tinderbox/grafana"


def grafana_unit(grafana: Grafana) -> str:
    """The unit of Grafana's container. Its data lies in the docker volume `tinderbox-grafana`."""
    settings = {
        "GF_SERVER_HTTP_ADDR": grafana.listen,
        "GF_SERVER_HTTP_PORT": str(grafana.port),
        "GF_PATHS_PROVISIONING": f"{_INSIDE}/provisioning",
        "GF_AUTH_ANONYMOUS_ENABLED": "false",
        "GF_USERS_ALLOW_SIGN_UP": "false",
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
        "GF_NEWS_NEWS_FEED_ENABLED": "false",
    }
    run = [DOCKER, "run", "--rm", "--pull", "missing", "--name", GRAFANA, "--network", "host"]
    run += ["--security-opt", "no-new-privileges", "--cap-drop", "ALL", "--memory", "1g", "--pids-limit", "512"]
    run += ["--env-file", SECRETS]
    for name, value in settings.items():
        run += ["--env", f"{name}={value}"]
    run += ["--mount", f"type=volume,source={GRAFANA},target=/var/lib/grafana"]
    run += ["--mount", f"type=bind,source={_FOLDER},target={_INSIDE},readonly", grafana.image]
    command = " \\\n    ".join(map(word, run))
    return (
        "# By Tinderbox, monitoring.grafana of the fleet file. Unverified: not tried with a real Grafana.\n"
        "[Unit]\nDescription=Grafana, by Tinderbox\nRequires=docker.service\n"
        "After=docker.service network-online.target\n"
        "Wants=network-online.target\nStartLimitIntervalSec=1h\nStartLimitBurst=5\n\n"
        f"[Service]\nType=exec\nExecStartPre=-{DOCKER} rm --force {GRAFANA}\nExecStart={command}\n"
        f"ExecStop={DOCKER} stop --time 30 {GRAFANA}\nRestart=on-failure\nRestartSec=30\nTimeoutStartSec=15min\n"
        "NoNewPrivileges=yes\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def grafana_files(prometheus: Prometheus | None, seen: Watched, admin_password: str | None) -> dict[str, str | None]:
    """Path → text of what Grafana reads; None for each where there is to be no Grafana: no `prometheus` is given."""
    wanted = prometheus is not None
    url = "" if prometheus is None else f"http://{place(_local(prometheus.listen), prometheus.port)}"
    texts: dict[str, str | None] = {
        f"{_FOLDER}/dashboards/tinderbox-gateway.json": None,
        f"{_FOLDER}/provisioning/datasources/tinderbox.yaml": datasource_text(url),
        f"{_FOLDER}/provisioning/dashboards/tinderbox.yaml": provider_text(),
        **{f"{_FOLDER}/dashboards/{name}": text for name, text in dashboard_texts(seen).items()},
        SECRETS: f"GF_SECURITY_ADMIN_PASSWORD={admin_password}\n",
    }
    return {path: text if wanted else None for path, text in texts.items()}


def _local(listen: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)  # noqa: S104, compared with


def dashboard_texts(seen: Watched) -> dict[str, str]:
    """File name → text of every dashboard."""
    found = dashboards(seen.fleet, with_gateway=bool(seen.gateways))
    return {f"{one['uid']}.json": json.dumps(one, indent=1) + "\n" for one in found}


def datasource_text(url: str) -> str:
    """Grafana's provisioning of Prometheus as a datasource."""
    source = {
        "name": "Tinderbox", "uid": DATASOURCE, "type": "prometheus", "access": "proxy", "url": url, "isDefault": True,
        "editable": False,
    }  # fmt: skip
    return yaml.safe_dump({"apiVersion": 1, "datasources": [source]}, sort_keys=False)


def provider_text() -> str:
    """Grafana's provisioning of dashboards from files."""
    provider = {
        "name": "Tinderbox", "folder": "Tinderbox", "type": "file", "disableDeletion": False, "allowUiUpdates": False,
        "options": {"path": f"{_INSIDE}/dashboards"},
    }  # fmt: skip
    return yaml.safe_dump({"apiVersion": 1, "providers": [provider]}, sort_keys=False)
