"""Prometheus beside a gateway: the query of every panel of the gateway's dashboard has data."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
import yaml

from modules.monitoring.dashboards import dashboards, queries
from tests.lab.behind_gateway import GATEWAY_HOST, KEYS, MODEL, deployed, fleet_of, url
from tests.lab.debian_packages import offered
from tests.lab.lab_driver import Lab
from tests.lab.watched_host import WatchedHost, awaited, debian_packages

pytestmark = [pytest.mark.lab, pytest.mark.long]
FLEET = "endpoint"


@pytest.fixture(scope="module")
def eyes(wide_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedHost]:
    """The gateway's host, with a Prometheus that watches what HAProxy tells."""
    plain = fleet_of(wide_lab, "watched")
    with_gateway = yaml.safe_load(plain.read_text())
    settings = with_gateway["hosts"][GATEWAY_HOST]["settings"]
    settings["monitoring"] = {"exporters": {"every_s": 5}, "prometheus": {"scrape_s": 5, "retention": "2d"}}
    watched = wide_lab.layout.folder / "endpoint-watched-by-prometheus.yaml"
    watched.write_text(yaml.safe_dump(with_gateway, sort_keys=False))
    found = WatchedHost(wide_lab, GATEWAY_HOST)
    with (
        offered(wide_lab, GATEWAY_HOST, "haproxy", tmp_path_factory.mktemp("haproxy")),
        debian_packages(wide_lab, GATEWAY_HOST),
    ):
        run = deployed(wide_lab, plain)
        assert run.rc == 0, run.text
        found.settle(watched)
        yield found
        found.settle(plain)


def test_the_query_of_every_panel_of_the_gateway_has_data(eyes: WatchedHost) -> None:
    (dashboard,) = (one for one in dashboards(FLEET, with_gateway=True) if one["uid"] == "tinderbox-gateway")
    marks = {one["name"] for one in dashboard["annotations"]["list"]}
    # No exporter of this fleet is on a host that serves, so no release is there to be marked.
    asked = [(title, text) for title, text in queries(dashboard) if title not in marks]
    assert len(asked) > 3
    headers = {"authorization": f"Bearer {KEYS['alice-key']}"}
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 2}

    def all_found() -> bool:
        answer = httpx.post(
            f"{url(eyes.lab)}/v1/chat/completions", json=body, headers=headers, timeout=60, trust_env=False
        )
        assert answer.status_code == 200, answer.text
        found = {title: eyes.series(filled(text)) for title, text in asked}
        missing.clear()
        missing.extend(title for title in found if not found[title])
        return not missing

    missing: list[str] = []
    awaited(all_found, f"no data in {missing}")
    up = eyes.series(filled('haproxy_server_status{fleet="$fleet", state="UP"} == 1'))
    assert {one["metric"]["server"] for one in up} == {"spark-2", "spark-3"}


def filled(text: str) -> str:
    """A panel's query, as Grafana asks it."""
    return text.replace("$__rate_interval", "1m").replace("$fleet", FLEET)
