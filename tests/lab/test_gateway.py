"""One endpoint before two lab hosts: who may ask, where requests go, and that none is lost over a restart."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from modules.lab.layout import ROOT
from tests.lab.behind_gateway import (
    AGENT_PORT,
    GATEWAY_HOST,
    KEYS,
    METRICS_PORT,
    MODEL,
    changed,
    deployed,
    fleet_of,
    gateway_settings,
    service_of,
    trusting,
    url,
)
from tests.lab.debian_packages import offered
from tests.lab.fake_release import PORT, SERVICE
from tests.lab.gateway_load import HOST_HEADER, under_load
from tests.lab.lab_driver import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
ALICE = {"authorization": f"Bearer {KEYS['alice-key']}"}
BOB = {"authorization": f"Bearer {KEYS['bob-key']}"}
SPARKS = ("spark-2", "spark-3")


@pytest.fixture(scope="module")
def endpoint(wide_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fleet file of an endpoint that serves."""
    fleet = fleet_of(wide_lab, "plain")
    with offered(wide_lab, GATEWAY_HOST, "haproxy", tmp_path_factory.mktemp("haproxy")):
        run = deployed(wide_lab, fleet)
    assert run.rc == 0, run.text
    await_up(wide_lab)
    return fleet


def await_up(lab: Lab, servers: int = 2, within_s: float = 60) -> None:
    """Until the gateway sends requests to so many servers."""
    deadline = time.monotonic() + within_s
    while len(taking(lab)) != servers:
        assert time.monotonic() < deadline, shown(lab)
        time.sleep(0.5)


def shown(lab: Lab) -> list[dict[str, str]]:
    """What HAProxy tells of its servers."""
    # Through ssh, since its figures are told on loopback.
    text = lab.ssh(GATEWAY_HOST, f"curl -sS 'http://127.0.0.1:{METRICS_PORT}/stats;csv'").stdout
    names, *rows = [line.split(",") for line in text.removeprefix("# ").splitlines() if line]
    found = [dict(zip(names, row, strict=False)) for row in rows]
    return [row for row in found if row["svname"].startswith("spark-")]


def taking(lab: Lab) -> list[str]:
    return sorted(row["svname"] for row in shown(lab) if row["status"].startswith("UP"))


def asked(lab: Lab, headers: dict[str, str], content: str = "Hello.", **body: Any) -> httpx.Response:
    document = {"model": MODEL, "messages": [{"role": "user", "content": content}], "max_tokens": 2, **body}
    return httpx.post(
        f"{url(lab)}/v1/chat/completions", json=document, headers=headers, timeout=60, trust_env=False
    )  # fmt: skip


def test_a_second_run_changes_nothing(wide_lab: Lab, endpoint: Path) -> None:
    run = deployed(wide_lab, endpoint)
    assert run.rc == 0, run.text
    assert changed(run) == 0, run.text


def test_who_has_no_key_gets_nothing_and_who_has_one_gets_the_service(wide_lab: Lab, endpoint: Path) -> None:
    wrong = [{}, {"authorization": "Bearer nope"}, {"authorization": f"Bearer {KEYS['engine-key']}"}]
    for headers in wrong:
        refused = asked(wide_lab, headers)
        assert refused.status_code == 401
        assert refused.json()["error"]["code"] == "invalid_api_key"
    for headers in (ALICE, BOB, {"x-api-key": KEYS["bob-key"]}):
        answer = asked(wide_lab, headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers[HOST_HEADER] in SPARKS
    # What an engine tells besides is not for clients.
    assert httpx.get(f"{url(wide_lab)}/metrics", headers=ALICE, trust_env=False).status_code == 404
    assert httpx.get(f"{url(wide_lab)}/health", trust_env=False).status_code == 200
    # The engine itself is open to its own key alone.
    direct = f"http://{wide_lab.address('spark-2')}:{PORT}/v1/models"
    assert httpx.get(direct, headers=ALICE, trust_env=False).status_code == 401


def test_a_stream_comes_token_by_token(wide_lab: Lab, endpoint: Path) -> None:
    """By the order of things: the first token is here while the engine still has the request."""
    body = {
        "model": MODEL, "messages": [{"role": "user", "content": "Tell a story."}], "max_tokens": 100,
        "ignore_eos": True, "stream": True,
    }  # fmt: skip
    running: list[str] = []
    with httpx.stream(
        "POST", f"{url(wide_lab)}/v1/chat/completions", json=body, headers=ALICE, timeout=60, trust_env=False
    ) as answer:
        host = answer.headers[HOST_HEADER]
        for line in answer.iter_lines():
            if '"content": "o"' in line and not running:
                told = httpx.get(f"http://{wide_lab.address(host)}:{PORT}/metrics", trust_env=False).text
                running += re.findall(r"vllm:num_requests_running (\d+)", told)
                assert "[DONE]" not in line
    assert line == "data: [DONE]" or not line
    assert running == ["1"]


def test_figures_are_told_on_loopback_alone(wide_lab: Lab, endpoint: Path) -> None:
    text = wide_lab.ssh(GATEWAY_HOST, f"curl -sS http://127.0.0.1:{METRICS_PORT}/metrics").stdout
    for host in SPARKS:
        assert f'haproxy_server_status{{proxy="{SERVICE}",server="{host}",state="UP"}} 1' in text
    assert f'haproxy_backend_http_responses_total{{proxy="{SERVICE}",code="2xx"}}' in text
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://{wide_lab.address(GATEWAY_HOST)}:{METRICS_PORT}/metrics", trust_env=False)


def test_no_key_stands_where_others_can_read_it(wide_lab: Lab, endpoint: Path) -> None:
    wide_lab.write(GATEWAY_HOST, "/root/keys", "".join(f"{key}\n" for key in KEYS.values()))
    clients = f"{KEYS['alice-key']}\n{KEYS['bob-key']}\n"
    wide_lab.write(GATEWAY_HOST, "/root/client-keys", clients)
    look = (
        "cd /; grep -lsaFf /root/keys /proc/[0-9]*/cmdline /proc/[0-9]*/environ;"
        " journalctl --no-pager | grep -cFf /root/keys;"
        " find /etc /run /usr/local /var/lib/tinderbox /tmp -type f -perm /044 -exec grep -lsFf /root/keys {} +;"
        # Of clients' keys not even root's files have more than a hash.
        " grep -rlsFf /root/client-keys /etc /run /var/lib/tinderbox /var/log; true"
    )
    found = wide_lab.ssh(GATEWAY_HOST, f"sudo sh -c {json.dumps(look)}").stdout.split()
    wide_lab.ssh(GATEWAY_HOST, "sudo rm /root/keys /root/client-keys")
    assert found == ["0"]
    # So that the search can fail: the one file that has the engine's key is found where all are looked at.
    assert KEYS["engine-key"] in wide_lab.read(GATEWAY_HOST, "/etc/tinderbox/gateway/current/keys.map")


def test_only_gateways_are_told_by_the_agent(wide_lab: Lab, endpoint: Path) -> None:
    address = wide_lab.address("spark-2")
    program = (
        f"import socket; s = socket.create_connection(('{address}', {AGENT_PORT}), 5); "
        f"s.sendall(b'{SERVICE}\\n'); print(s.recv(99))"
    )
    question = f"python3 -c {shlex.quote(program)}"
    assert wide_lab.ssh(GATEWAY_HOST, question).stdout.strip() == r"b'ready up 100%\n'"
    assert wide_lab.ssh("spark-3", question, check=False).stdout.strip() == "b''"


def test_a_changed_flag_on_a_host_under_load_loses_no_request(wide_lab: Lab, endpoint: Path) -> None:
    changed_one = {SERVICE: service_of(wide_lab, FAKE_NOTE="another")}
    services = {"spark-2": changed_one, "spark-3": {SERVICE: service_of(wide_lab)}}
    fleet = fleet_of(wide_lab, "changed", services=services)
    before = wide_lab.ssh("spark-2", f"systemctl show -P InvocationID tinderbox-{SERVICE}").stdout
    seen: list[list[str]] = []
    with under_load(url(wide_lab), KEYS["alice-key"], MODEL) as account, ThreadPoolExecutor(1) as pool:
        time.sleep(3)
        run = pool.submit(deployed, wide_lab, fleet, "--limit", "spark-2")
        while not run.done():
            seen.append(taking(wide_lab))
            time.sleep(0.5)
        await_up(wide_lab)
        time.sleep(4)
    assert run.result().rc == 0, run.result().text
    assert wide_lab.ssh("spark-2", f"systemctl show -P InvocationID tinderbox-{SERVICE}").stdout != before
    assert account.lost == [], account.text()
    # It was at work before and after, and the other one alone meanwhile.
    assert set(account.complete) == set(SPARKS), account.text()
    assert ["spark-3"] in seen
    assert account.streams > 10


def test_a_release_that_fails_its_gate_loses_no_request_and_the_former_is_sent_some_again(
    wide_lab: Lab, endpoint: Path
) -> None:
    slow = {SERVICE: service_of(wide_lab, FAKE_TOKEN_S="0.3")}
    services = {"spark-2": slow, "spark-3": {SERVICE: service_of(wide_lab)}}
    fleet = fleet_of(wide_lab, "slow", services=services)
    with under_load(url(wide_lab), KEYS["alice-key"], MODEL) as account:
        run = deployed(wide_lab, fleet, "--limit", "spark-2")
        await_up(wide_lab)
    assert run.rc == 1, run.text
    assert "failed its gate" in run.text
    assert account.lost == [], account.text()


def test_a_stop_loses_no_request(wide_lab: Lab, endpoint: Path) -> None:
    with under_load(url(wide_lab), KEYS["alice-key"], MODEL) as account:
        time.sleep(3)
        stop = ["env", "pyinfra", "inventory.py", "deploys/stop.py", "-y", "--limit", "spark-3"]
        run = wide_lab.tinderbox(stop, fleet=endpoint)
        await_up(wide_lab, 1)
        time.sleep(2)
    assert run.rc == 0, run.text
    assert account.lost == [], account.text()
    again = deployed(wide_lab, endpoint)
    assert again.rc == 0, again.text
    await_up(wide_lab)


def test_a_server_that_dies_costs_what_was_in_flight_there(wide_lab: Lab, endpoint: Path) -> None:
    with under_load(url(wide_lab), KEYS["alice-key"], MODEL, streams=4, plain=2) as account:
        time.sleep(4)
        died = time.time()
        subprocess.run(["docker", "kill", wide_lab.layout.container("spark-2")], check=True, capture_output=True)
        time.sleep(12)
    wide_lab.command("up")
    # A reply that had begun can not be had from another host; what had not begun was asked of the other one.
    assert {(one.kind, one.host) for one in account.lost} <= {("stream", "spark-2")}, account.text()
    assert len(account.lost) <= 4, account.text()
    assert all(one.tokens > 0 and abs(one.at - died) < 60 for one in account.lost), account.text()
    assert account.complete["spark-3"] > 0
    await_up(wide_lab)


def test_a_controller_that_is_killed_while_it_measures_a_good_release_leaves_no_host_drained(
    wide_lab: Lab, endpoint: Path
) -> None:
    words = [str(Path(sys.executable).with_name("pyinfra")), "inventory.py", "deploys/measure.py", "-y"]
    environment = {**os.environ, **wide_lab.environment(endpoint)}
    with subprocess.Popen(
        [*words, "--limit", "spark-2"], cwd=ROOT, env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        await_up(wide_lab, 1)
        assert taking(wide_lab) == ["spark-3"]
        assert child.poll() is None
        os.killpg(child.pid, signal.SIGKILL)
    # The job goes on unattended, and the host takes requests 3 minutes after its end.
    await_up(wide_lab, within_s=480)
    assert asked(wide_lab, ALICE).status_code == 200
    run = deployed(wide_lab, endpoint)
    assert run.rc == 0, run.text


def test_more_than_the_limit_is_refused_to_that_client_alone(wide_lab: Lab, endpoint: Path) -> None:
    clients = {"alice": {"key": "alice-key", "requests_per_minute": 3}, "bob": {"key": "bob-key", "concurrent": 1}}
    fleet = fleet_of(wide_lab, "limits", gateway=gateway_settings(clients=clients))
    run = deployed(wide_lab, fleet, "--limit", GATEWAY_HOST)
    assert run.rc == 0, run.text
    await_up(wide_lab)
    answers = [asked(wide_lab, ALICE) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].json()["error"]["code"] == "rate_limit_exceeded"
    assert answers[-1].headers["retry-after"]
    # Longer than 1 MiB, also where its length is not told before.
    text = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x" * 1100 * 1024}]}).encode()
    for content in (text, iter([text])):
        refused = httpx.post(f"{url(wide_lab)}/v1/chat/completions", content=content, headers=BOB, trust_env=False)
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "request_too_large")
    with ThreadPoolExecutor(3) as pool:
        many = pool.map(lambda _: asked(wide_lab, BOB).status_code, range(3))
        assert Counter(many) == {200: 1, 429: 2}


def test_a_configuration_that_is_refused_is_not_published(wide_lab: Lab, endpoint: Path) -> None:
    wide_lab.write(GATEWAY_HOST, "/root/broken.pem", "-----BEGIN CERTIFICATE-----\nbroken\n")
    before = wide_lab.ssh(GATEWAY_HOST, "sudo readlink /etc/tinderbox/gateway/current").stdout
    fleet = fleet_of(wide_lab, "broken", gateway=gateway_settings(tls={"host_file": "/root/broken.pem"}))
    run = deployed(wide_lab, fleet, "--limit", GATEWAY_HOST)
    assert run.rc == 1, run.text
    assert "HAProxy refuses the new configuration, and the former one stays in force" in run.text
    assert wide_lab.ssh(GATEWAY_HOST, "sudo readlink /etc/tinderbox/gateway/current").stdout == before
    assert asked(wide_lab, BOB).status_code == 200


def test_models_conversations_and_tls(wide_lab: Lab, endpoint: Path, tmp_path: Path) -> None:
    """Two services told apart by model, one conversation to one host, and a given certificate."""
    certificate, key = made_certificate(tmp_path, wide_lab.address(GATEWAY_HOST))
    model = {
        "repository": "tinderbox-lab/gpt-oss-tiny", "revision": _commit(), "size_gib": 0.1,
        "served_as": "another-model", "source": "for tests", "encodings": [],
    }  # fmt: skip
    second = service_of(wide_lab, {"model": model, "port": PORT + 1, "gate": None})
    usual = {SERVICE: service_of(wide_lab)}
    services = {"spark-2": {**usual, "other": second}, "spark-3": usual}
    tls = {"certificate": str(certificate), "key": str(key)}
    gateway = gateway_settings(tls=tls, balance="prefix")
    run = deployed(wide_lab, fleet_of(wide_lab, "both", gateway=gateway, services=services))
    assert run.rc == 0, run.text
    await_up(wide_lab, 3)
    with httpx.Client(
        base_url=url(wide_lab, tls=True), headers=ALICE, verify=trusting(certificate), trust_env=False, timeout=60
    ) as client:

        def host_of(messages: list[dict[str, str]], name: str = MODEL) -> str:
            body = {"model": name, "messages": messages, "max_tokens": 2}
            answer = client.post("/v1/chat/completions", json=body)
            assert answer.status_code == 200, answer.text
            return answer.headers[HOST_HEADER]

        assert {one["id"] for one in client.get("/v1/models").json()["data"]} == {MODEL, "another-model"}
        assert host_of([{"role": "user", "content": "Hello."}], "another-model") == "spark-2"
        refused = client.post("/v1/chat/completions", json={"model": "none", "messages": []})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")
        hosts = []
        for number in range(12):
            said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Story {number}"}]
            first = host_of(said)
            more = [{"role": "assistant", "content": "Once."}, {"role": "user", "content": "And then?"}]
            assert [host_of([*said, *more]), host_of([*said, *more, *more])] == [first, first]
            hosts.append(first)
        assert set(hosts) == set(SPARKS)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url(wide_lab, tls=True)}/v1/models", headers=ALICE, trust_env=False)
    back = deployed(wide_lab, endpoint)
    assert back.rc == 0, back.text
    wide_lab.tinderbox(["pyinfra", "inventory.py", "deploys/remove.py", "-y", "--limit", "spark-2"], fleet=endpoint)


def test_without_its_key_nothing_of_it_stays(wide_lab: Lab, endpoint: Path) -> None:
    none = fleet_of(wide_lab, "none", gateway={})
    run = deployed(wide_lab, none)
    assert run.rc == 0, run.text
    left = (
        "ls -d /etc/tinderbox/gateway /etc/tinderbox/agent.json /etc/systemd/system/tinderbox-agent.*"
        " /etc/systemd/system/*.wants/tinderbox-agent* /etc/systemd/system/*.wants/tinderbox-gateway*"
        " /etc/systemd/system/tinderbox-gateway* /run/tinderbox/drain /run/tinderbox/drain-measured"
        " /run/tinderbox-agent /run/tinderbox-gateway"
        " /usr/sbin/haproxy /etc/haproxy 2>/dev/null; ss -Hltn | grep -E ':(8080|8405|5588) '"
    )
    for host in (GATEWAY_HOST, *SPARKS):
        assert wide_lab.ssh(host, f"sudo sh -c {json.dumps(left)}", check=False).stdout == ""
    again = deployed(wide_lab, none)
    assert (again.rc, changed(again)) == (0, 0), again.text


def _commit() -> str:
    from modules.lab.model.repository import COMMIT

    return COMMIT


def made_certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """A certificate for an address that signs itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "endpoint")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "endpoint.crt", folder / "endpoint.key"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, private
