"""What HAProxy is told, as text, and that it takes it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from modules.fleet.gateway import AgentPlan
from modules.gateway.render import (
    CERTIFICATE,
    CLIENTS,
    CONFIGURATION,
    KEYS,
    agent_files,
    configuration,
    digest,
    gateway_files,
    unit_text,
)
from modules.hostside import gateway_host
from tests.unit.gateway_samples import PLANS, SECRETS, gateway

SAMPLES = Path(__file__).parents[1] / "samples" / "gateway"
AGENT = AgentPlan("0.0.0.0", 5588, ("gpt-oss",), ("10.0.0.10",), 120)
ASKED = {"gpt-oss": {"url": "http://127.0.0.1:8000", "port": 8000}, "other": {}}


@pytest.mark.parametrize("name", sorted(PLANS))
def test_the_configuration_is_the_one_that_was_looked_through(name: str) -> None:
    sample = SAMPLES / f"{name}.cfg"
    if os.environ.get("TINDERBOX_RENEW") == "1":
        sample.write_text(configuration(PLANS[name]))
    assert configuration(PLANS[name]) == sample.read_text()


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="no HAProxy on this machine; lab tests try it on a host")
@pytest.mark.parametrize("name", sorted(PLANS))
def test_haproxy_takes_it(name: str, tmp_path: Path) -> None:
    files = gateway_files(PLANS[name], SECRETS, None)
    # A certificate that is not there is no fault of the text.
    text = files[CONFIGURATION].replace(" ssl crt /etc/ssl/private/front.pem alpn h2,http/1.1", "")
    for file, content in {**files, CONFIGURATION: text}.items():
        (tmp_path / file).write_text(content)
    done = subprocess.run(
        ["haproxy", "-c", "-f", str(tmp_path / CONFIGURATION)], capture_output=True, text=True, check=False
    )
    alerts = [line for line in done.stderr.splitlines() if "ALERT" in line or "WARNING" in line]
    assert (done.returncode, alerts) == (0, [])


def test_only_files_beside_the_configuration_hold_secrets_and_of_clients_none_does() -> None:
    files = gateway_files(PLANS["all"], SECRETS, "certificate and key\n")
    assert sorted(files) == sorted([CERTIFICATE, CLIENTS, CONFIGURATION, KEYS])
    for secret in SECRETS.values():
        assert secret not in files[CONFIGURATION] + files[CLIENTS]
    assert files[KEYS] == "gpt-oss sk-engine-hidden\n"
    hashed = hashlib.sha256(b"sk-bob-hidden").hexdigest().upper()
    assert f"{hashed} bob\n" in files[CLIENTS]


def test_host_and_controller_know_the_files_by_one_name() -> None:
    files = gateway_files(PLANS["all"], SECRETS, None)
    assert digest(files) == gateway_host.digest(files)
    assert digest({**files, KEYS: "gpt-oss another\n"}) != digest(files)


def test_a_clients_own_limit_is_in_place_of_everybodys() -> None:
    text = configuration(
        gateway(
            clients={"alice": {"key": "alice", "requests_per_minute": 5}, "bob": {"key": "bob"}},
            limits={"requests_per_minute": 60},
        )
    )
    assert "{ var(txn.client) -m str alice } { sc_http_req_rate(0) gt 5 }" in text
    assert "{ var(txn.client) -m str bob } { sc_http_req_rate(0) gt 60 }" in text
    assert "sc_conn_cur" not in text


def test_the_units_are_valid(tmp_path: Path) -> None:
    files = agent_files(AGENT, ASKED)
    texts = {Path(path).name: text for path, text in files.items() if "/systemd/" in path}
    texts["tinderbox-gateway.service"] = unit_text().replace("/usr/sbin/haproxy", "/bin/true")
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for name in texts:
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / name)],
            capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), name
