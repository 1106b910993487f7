"""Units and settings of what watches a host."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.catalog import load_catalog
from modules.fleet import load_fleet
from modules.fleet.plan import host_plan
from modules.monitoring.configuration import configuration_files
from modules.monitoring.exporter import exporter_settings
from modules.monitoring.plan import WatchPlan, watch_plan
from modules.monitoring.targets import Watched, watched
from modules.monitoring.units import (
    NODE_EXPORTER,
    drop_in_file,
    exporter_unit,
    node_exporter_drop_in,
    prometheus_drop_in,
)
from modules.spec.cluster import Cluster
from modules.spec.monitoring import Alerts, Exporters, Prometheus

OPEN: dict[str, Any] = {"listen": "10.0.0.12", "scraped_from": ["10.0.0.11"]}
SERVICE = {"engine": "vllm-mxfp4", "model": "gpt-oss-120b", "gate": "vllm-mxfp4-single-stream"}
DIGEST = "sha256:" + "a" * 64


def planned(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any] | None = None, name: str = "spark-1"
) -> tuple[WatchPlan, Watched]:
    """The plan of a host of a fleet of two; `one`, `other`: their monitoring."""
    document = {
        "fleet": "office",
        "secrets": {"grafana": {"command": ["echo", "hush"]}},
        "defaults": {"services": {"gpt-oss": SERVICE}},
        "hosts": {
            "spark-1": {"address": "10.0.0.11", "settings": {"monitoring": one}},
            "spark-2": {"address": "10.0.0.12", "settings": {"monitoring": other or {}}},
        },
    }
    path = tmp_path / f"{abs(hash(str(document)))}.yaml"
    path.write_text(yaml.safe_dump(document))
    fleet = load_fleet(path)
    plan = host_plan(fleet.hosts[name], load_catalog())
    seen = watched(fleet, load_catalog(), by=name if plan.settings.monitoring.prometheus is not None else None)
    return watch_plan(plan, seen, "hush"), seen


@pytest.mark.parametrize(
    "exporters",
    [Exporters(), Exporters(listen="10.0.0.12", scraped_from=("10.0.0.11",)), Exporters(node_exporter=False)],
)
def test_the_exporters_unit_is_valid(exporters: Exporters, tmp_path: Path) -> None:
    unit = tmp_path / "tinderbox-exporter.service"
    unit.write_text(
        exporter_unit(exporters, ["127.0.0.1", "0.0.0.0", "10.0.0.12"]).replace("/usr/bin/python3", "/bin/true")
    )
    verified(unit)
    assert "IPAddressAllow=localhost 10.0.0.12\n" in unit.read_text()


@pytest.mark.parametrize("name", ["prometheus-node-exporter", "prometheus"])
def test_the_packages_units_are_valid_with_our_drop_ins(name: str, tmp_path: Path) -> None:
    drop_ins = {
        "prometheus-node-exporter": node_exporter_drop_in(Exporters(listen="::1")),
        "prometheus": prometheus_drop_in(
            Prometheus(retention_gib=5, listen="10.0.0.11", scraped_from=("10.0.0.0/24",)), ["10.0.0.12"]
        ),
    }
    unit = tmp_path / f"{name}.service"
    unit.write_text(drop_ins[name].replace(f"/usr/bin/{name}", "/bin/true"))
    verified(unit)


def verified(unit: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_they_listen_where_the_fleet_file_says_and_the_kernel_lets_in_who_it_names() -> None:
    text = node_exporter_drop_in(Exporters(listen="10.0.0.12", port=9200, scraped_from=("10.0.0.11", "10.1.0.0/24")))
    assert "--web.listen-address=10.0.0.12:9200 " in text
    assert "IPAddressDeny=any\nIPAddressAllow=localhost 10.0.0.11 10.1.0.0/24 10.0.0.12\n" in text
    assert "--web.listen-address=[::1]:9100" in node_exporter_drop_in(Exporters(listen="::1"))
    # Where it is not open, Prometheus may look up names, and speak to whom it will.
    assert "IPAddressDeny" not in prometheus_drop_in(Prometheus(), [])
    opened = prometheus_drop_in(Prometheus(listen="10.0.0.11", scraped_from=("10.0.0.9",)), ["10.0.0.12"])
    assert "IPAddressAllow=localhost 10.0.0.9 10.0.0.11 10.0.0.12\n" in opened


def test_a_host_gets_nothing_that_it_is_not_to_have(tmp_path: Path) -> None:
    plan, _ = planned(tmp_path, {})
    assert set(plan.files.values()) == {None}
    assert (plan.running, plan.configuration, plan.asked_at) == ((), {}, None)
    with_own, _ = planned(tmp_path, {"exporters": {"node_exporter": False, "textfile_directory": "/srv/text"}})
    assert with_own.files[drop_in_file(NODE_EXPORTER)] is None
    assert "ReadWritePaths=-/srv/text\n" in str(with_own.files["/etc/systemd/system/tinderbox-exporter.service"])
    assert with_own.running == ("tinderbox-exporter",)


def test_prometheus_finds_itself_by_loopback_and_the_others_where_they_listen(tmp_path: Path) -> None:
    plan, seen = planned(tmp_path, {"exporters": {}, "prometheus": {}}, {"exporters": OPEN})
    assert [host.target for host in seen.hosts] == ["127.0.0.1:9100", "10.0.0.12:9100"]
    assert seen.targets()[1]["labels"] == {"fleet": "office", "host": "spark-2", "simulated": "false"}
    configuration = yaml.safe_load(plan.configuration["prometheus.yml"])
    assert configuration["scrape_configs"][0]["file_sd_configs"] == [{"files": ["targets.json"]}]
    assert configuration["rule_files"] == ["rules.yml"]
    assert "alerting" not in configuration


def test_alertmanagers_and_their_paths(tmp_path: Path) -> None:
    plan, _ = planned(
        tmp_path, {"prometheus": {"alertmanagers": ["https://alerts.example:9093/am", "http://10.0.0.9:9093"]}}
    )
    told = yaml.safe_load(plan.configuration["prometheus.yml"])["alerting"]["alertmanagers"]
    assert told == [
        {"scheme": "https", "path_prefix": "/am", "static_configs": [{"targets": ["alerts.example:9093"]}]},
        {"scheme": "http", "static_configs": [{"targets": ["10.0.0.9:9093"]}]},
    ]


def test_the_exporter_is_told_of_services_bounds_and_where_keys_lie_and_of_no_key(tmp_path: Path) -> None:
    plan, _ = planned(tmp_path, {"exporters": {}})
    service = yaml.safe_load(str(plan.files["/etc/tinderbox/monitoring.json"]))["services"]["gpt-oss"]
    assert (service["prefix"], service["url"], service["gate"]) == ("vllm:", "http://127.0.0.1:8000", True)
    assert service["bounds"]["tg128@pp2048 c1"]["min"] > 0
    assert service["units"]["tg128@pp2048 c1"] == "tok/s"
    assert "key_file" not in service


def test_every_engine_of_the_catalog_has_its_names() -> None:
    from modules.monitoring.engine_names import prefix_of

    prefixes = {name: prefix_of(engine) for name, engine in load_catalog().engines.items()}
    assert prefixes == {
        "vllm-mxfp4": "vllm:", "vllm": "vllm:", "vllm-cpu": "vllm:", "sglang": "sglang:", "llama-cpp": "llamacpp:"
    }  # fmt: skip


def test_grafana_has_its_password_in_a_file_of_roots_and_nowhere_else(tmp_path: Path) -> None:
    grafana = {"image": f"grafana/grafana@{DIGEST}", "admin_password": "grafana"}
    plan, _ = planned(tmp_path, {"prometheus": {}, "grafana": grafana})
    having = [path for path, text in plan.files.items() if "hush" in str(text)]
    assert having == sorted(plan.secret_files) == ["/etc/tinderbox/grafana.secret.env"]
    unit = tmp_path / "tinderbox-grafana.service"
    unit.write_text(
        str(plan.files["/etc/systemd/system/tinderbox-grafana.service"]).replace("/usr/bin/docker", "/bin/true")
    )
    verified(unit)
    source = yaml.safe_load(str(plan.files["/etc/tinderbox/grafana/provisioning/datasources/tinderbox.yaml"]))
    assert source["datasources"][0]["url"] == "http://127.0.0.1:9090"
    assert "hush" not in str(plan.wish(whole=True))


def test_a_gateway_is_asked_where_it_can_be_and_is_no_host(tmp_path: Path) -> None:
    _, seen = planned(tmp_path, {"prometheus": {}, "exporters": {}})
    told = Watched(seen.fleet, seen.hosts, {"spark-1": "127.0.0.1:8405"})
    assert told.gateway_targets() == [
        {"targets": ["127.0.0.1:8405"], "labels": {"fleet": "office", "gateway": "spark-1"}}
    ]
    files = configuration_files(Prometheus(), told, Alerts())
    jobs = [job["job_name"] for job in yaml.safe_load(files["prometheus.yml"])["scrape_configs"]]
    assert jobs == ["tinderbox", "tinderbox-gateway", "prometheus"]
    assert "gateways.json" not in configuration_files(Prometheus(), seen, Alerts())


def test_nothing_of_it_needs_the_hosts_own_paths() -> None:
    """Programs for hosts import each other flat; what the controller takes of them must not."""
    done = subprocess.run(
        [sys.executable, "-c", "import roles.monitoring, modules.monitoring.__main__"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_worker_of_a_cluster_is_asked_for_no_figures_of_an_engine(tmp_path: Path) -> None:
    plan, _ = planned(tmp_path, {"exporters": {}})
    assert '"url": "http://127.0.0.1:8000"' in str(plan.files["/etc/tinderbox/monitoring.json"])
    path = tmp_path / "worker.yaml"
    defaults = {"services": {"gpt-oss": SERVICE}, "monitoring": {"exporters": {}}}
    path.write_text(
        yaml.safe_dump({"fleet": "pair", "defaults": defaults, "hosts": {"spark-1": {"address": "10.0.0.11"}}})
    )
    host = host_plan(load_fleet(path).hosts["spark-1"], load_catalog())
    cluster = Cluster(hosts=("spark-9", "spark-1"))
    (service,) = host.services
    worker = replace(service, service=service.service.model_copy(update={"cluster": cluster}), host="spark-1")
    assert '"url": null' in exporter_settings(replace(host, services=(worker,)))
