"""The way outside as the fleet file has it: a mirror, a proxy, certificate authorities; and what is shown of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.operations.encodings import cache_name
from tests.lab.hub_models import HubModel, content, hub_model
from tests.lab.lab_driver import Lab
from tests.lab.proxy import proxy
from tests.lab.spread_driver import DEPLOY, TOTAL, spread_of

pytestmark = [pytest.mark.lab, pytest.mark.long]
ONE, HOST = "spark-1", "spark-2"
HOME = "/var/lib/tinderbox/ways"
ENCODINGS = "/var/lib/tinderbox/encodings"
PAGE = "<!doctype html><html><body>Please log in</body></html>"


@pytest.fixture(scope="module")
def equipped(lab: Lab) -> Iterator[None]:
    """What fetches is there, and afterwards the host has the network settings that other tests want."""
    for host in (ONE, HOST):
        run = lab.converge(DEPLOY, fleet=lab.fleet_of(host))
        assert run.rc == 0, run.text
    yield
    run = lab.converge("deploys/site.py", fleet=lab.fleet_of(HOST))
    assert run.rc == 0, run.text


@pytest.fixture
def model(lab: Lab, equipped: None) -> Iterator[HubModel]:
    with hub_model(lab, "ways") as found:
        yield found
    lab.ssh(HOST, f"sudo rm -rf {HOME}")


def fleet(lab: Lab, model: HubModel, revision: str, **network: Any) -> Path:
    def change(written: dict[str, Any]) -> None:
        written["hosts"] = {HOST: written["hosts"][HOST]}
        written["defaults"]["weights"] = {"home": HOME}
        written["defaults"]["network"] |= network
        model.served(written, revision=revision)

    return lab.write_fleet("ways", change)


def asked(model: HubModel, commit: str, hub: str = "hub.lab") -> str:
    """How an error begins."""
    return f"spark-2: {model.repository}@{commit} from https://{hub}"


def test_a_proxy_carries_all_of_it_and_is_named_where_it_refuses(lab: Lab, model: HubModel) -> None:
    commit = model.publish(content("proxied"))
    with proxy(lab) as way:
        written = fleet(lab, model, commit, proxy={"https": way.url, "no_proxy": ["pypi.lab"]})
        way.refuses = 403
        refused = lab.converge(DEPLOY, fleet=written)
        assert refused.rc == 1, refused.text
        assert f"{asked(model, commit)} through the proxy {way.url}: " in refused.stderr
        assert "the proxy did not let us through: check `network.proxy`" in refused.stderr

        way.refuses, before = None, len(lab.requests())
        run = lab.converge(DEPLOY, fleet=written)
        assert run.rc == 0, run.text
        model.whole(HOST, HOME, commit)
    assert set(way.asked) == {"CONNECT hub.lab:443"}
    clients = {each["client"] for each in lab.requests(before) if model.repository in each["path"]}
    assert clients
    assert lab.address(HOST) not in clients


def test_an_authority_that_is_not_named_is_not_trusted_and_a_mirror_that_is_none_is_told(
    lab: Lab, model: HubModel
) -> None:
    commit = model.publish(content("trusted"))
    settled = lab.converge("deploys/site.py", fleet=fleet(lab, model, commit, ca_bundle=None))
    assert settled.rc == 0, settled.text
    refused = lab.converge(DEPLOY, fleet=fleet(lab, model, commit, ca_bundle=None))
    assert refused.rc == 1, refused.text
    assert f"{asked(model, commit)}: its certificate is not trusted here" in refused.stderr
    assert "set `network.ca_bundle` to the authority that signed it" in refused.stderr

    # It is there, and has other things.
    refused = lab.converge(DEPLOY, fleet=fleet(lab, model, commit, hub="https://encodings.lab"))
    assert refused.rc == 1, refused.text
    assert f"{asked(model, commit, 'encodings.lab')}: " in refused.stderr
    assert "`network.hub`" in refused.stderr

    run = lab.converge(DEPLOY, fleet=fleet(lab, model, commit))
    assert run.rc == 0, run.text
    model.whole(HOST, HOME, commit)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"body": PAGE, "headers": {"Content-Type": "text/html"}, "status": 200}, "gave a web page"),
        ({"cut_after": 100_000}, "gave 100000 bytes; "),
        ({"flip_at": 100_000}, "is published with "),
        ({"status": 503}, "answered 503"),
    ],
)
@pytest.mark.usefixtures("equipped")
def test_encodings_that_are_not_the_published_ones_never_get_their_names(
    lab: Lab, fault: dict[str, Any], told: str
) -> None:
    alone = lab.fleet_of(HOST)
    lab.ssh(HOST, f"sudo rm -rf {ENCODINGS}")
    with lab.faults({"host": "encodings.lab", "path": "o200k", **fault}):
        run = lab.converge("deploys/encodings.py", fleet=alone)
    assert run.rc == 1, run.text
    assert f"{HOST}: https://encodings.lab/o200k_base.tiktoken" in run.stderr
    assert told in run.stderr
    listed = lab.ssh(HOST, f"ls -A {ENCODINGS}").stdout
    assert "o200k" not in listed

    run = lab.converge("deploys/encodings.py", fleet=alone)
    assert run.rc == 0, run.text
    for name, encoding in load_catalog().encodings.items():
        for path in (name, cache_name(encoding.url)):
            digest = lab.ssh(HOST, f"sha256sum {ENCODINGS}/{path}").stdout.split()[0]
            assert digest == encoding.sha256
    assert hashlib.sha256(PAGE.encode()).hexdigest() not in lab.ssh(HOST, f"sha256sum {ENCODINGS}/*").stdout


@pytest.mark.usefixtures("equipped")
def test_bytes_rate_and_time_left_are_shown_while_it_comes_from_the_hub_and_from_a_peer(lab: Lab) -> None:
    """Of the model that comes in half a minute by such a link."""
    shown = r"weights gpt-oss-tiny: [\d.]+ MiB of 1\d\d\.\d MiB \((\d+) %\) · ([\d.]+) MiB/s · \d+s left · \d+s · "
    with spread_of(lab, "shown", ONE, HOST) as spread:
        with lab.shaped(ONE, 30):
            run = spread.run(ONE)
        assert run.rc == 0, run.text
        told(run.stderr, shown + "fetching")
        run = spread.run(limit_mbit=30)
        assert run.rc == 0, run.text
        told(run.stderr, shown + "from peers")
        assert TOTAL <= spread.taken(HOST) < TOTAL * 1.02


def told(text: str, pattern: str) -> None:
    """More than once, each time further, at about the rate of the link: 30 Mbit/s are 3.6 MiB/s."""
    found = [(int(percent), float(rate)) for percent, rate in re.findall(pattern, text)]
    assert len(found) > 1, text
    assert found == sorted(found, key=lambda line: line[0])
    assert found[0][0] < found[-1][0]
    assert all(0 < rate < 5 for _, rate in found), found
