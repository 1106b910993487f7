"""Who reaches a lab host, and who its services answer: asked from its neighbour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.fake_release import PORT, SERVICE, by_hand, deployed, fleet_of
from tests.lab.lab_driver import Lab, Run
from tests.lab.port_scan import listeners, open_ports
from tests.lab.served import Served

pytestmark = pytest.mark.lab
MAIN, OPENED = "spark-1", "spark-2"
SSH = 22
KEY_FILE = f"/etc/tinderbox/{SERVICE}.key.env"
_BODY = {"model": "gpt-oss-tiny", "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 8}


def test_of_a_host_that_serves_on_loopback_the_neighbour_finds_only_ssh(lab: Lab, served: Served) -> None:
    # That the scan finds what is there: ssh.
    assert served.reply()
    assert set(map(tuple, open_ports(lab, OPENED, MAIN).values())) == {(SSH,)}, listeners(lab, MAIN)


def status(lab: Lab, host: str, url: str, *words: str) -> int:
    """The HTTP status of a chat completion, asked on that host."""
    asked = (
        f"curl -sS --max-time 60 -o /dev/null -w '%{{http_code}}' --json '{json.dumps(_BODY)}' {' '.join(words)} {url}"
    )
    return int(lab.ssh(host, asked).stdout)


def changes(run: Run) -> tuple[int, int]:
    totals = run.json["results"]["totals"]
    return totals["success"], totals["error"]


@pytest.fixture(scope="module")
def opened(lab: Lab) -> tuple[Path, Run]:
    """A fleet file that opens a service of the neighbour's to all and names no key, and its first run."""
    # Twice as fast as its gate asks for, and slow enough to be measured on a machine that has much else to do.
    plain = fleet_of(lab, OPENED, "opened", FAKE_TOKEN_S="0.05")
    text = plain.read_text()
    assert text.count(f"port: {PORT}") == 1
    plain.write_text(text.replace(f"port: {PORT}", f"port: {PORT}\n      listen: 0.0.0.0"))
    run = deployed(lab, plain)
    assert run.rc == 0, run.text
    return plain, run


@pytest.mark.long
def test_an_opened_service_answers_only_who_has_the_key_that_the_host_made(lab: Lab, opened: tuple[Path, Run]) -> None:
    fleet, run = opened
    variable, _, key = lab.read(OPENED, KEY_FILE).strip().partition("=")
    assert (variable, len(key) >= 40) == ("VLLM_API_KEY", True)
    assert lab.ssh(OPENED, f"stat -c '%a %U' {KEY_FILE}").stdout.split() == ["600", "root"]
    # The operator is told where, and not what.
    assert f"VLLM_API_KEY in {KEY_FILE} on {OPENED}" in run.text
    assert key not in run.text

    url = f"http://{lab.address(OPENED)}:{PORT}/v1/chat/completions"
    assert status(lab, MAIN, url) == 401
    assert status(lab, MAIN, url, "-H 'Authorization: Bearer wrong'") == 401
    assert status(lab, MAIN, url, f"-H 'Authorization: Bearer {key}'") == 200
    # Readiness and a gate that measures from the controller have asked with it.
    release = Served(lab, fleet, OPENED).release()
    events: list[dict[str, Any]] = json.loads(lab.read(OPENED, f"/var/lib/tinderbox/ledger/{SERVICE}/{release}.json"))[
        "events"
    ]
    assert [event["event"] for event in events][-2:] == ["ready", "good"]

    # The key itself goes into no command of ours, since sudo keeps those in the journal.
    assert key not in lab.ssh(OPENED, "sudo journalctl --no-pager").stdout
    assert key not in lab.ssh(OPENED, "ps -eo args").stdout
    lab.write(OPENED, "/root/known", f"{key}\n")
    everywhere = "/etc/systemd /etc/tinderbox /var/lib/tinderbox/{ledger,gates,jobs}"
    held = lab.ssh(OPENED, f"sudo bash -c 'grep -rlF -f /root/known {everywhere}; rm /root/known'").stdout.split()
    assert held == [KEY_FILE]


@pytest.mark.long
def test_a_second_run_keeps_key_and_server(lab: Lab, opened: tuple[Path, Run]) -> None:
    fleet, _ = opened
    server = Served(lab, fleet, OPENED)
    before = server.invocation(), lab.read(OPENED, KEY_FILE)
    run = deployed(lab, fleet)
    assert (run.rc, changes(run)[1], changes(run)[0]) == (0, 0, 0), run.text
    assert (server.invocation(), lab.read(OPENED, KEY_FILE)) == before


@pytest.mark.long
def test_what_its_unit_runs_is_confined_and_does_its_work(lab: Lab, opened: tuple[Path, Run]) -> None:
    server = Served(lab, opened[0], OPENED)
    shown = lab.ssh(OPENED, f"systemctl show -P MainPID {server.unit}").stdout.strip()
    told = dict(line.split(":", 1) for line in lab.read(OPENED, f"/proc/{shown}/status").splitlines() if ":" in line)
    assert (told["NoNewPrivs"].strip(), told["Seccomp"].strip()) == ("1", "2")
    allowed = sum(1 << number for number in (5, 14, 23, 24))  # KILL, IPC_LOCK, SYS_NICE, SYS_RESOURCE
    assert int(told["CapBnd"], 16) & ~allowed == 0
    # It sees a system that it can not write to, but for our own state.
    inside = f"sudo nsenter --target {shown} --mount"
    assert lab.ssh(OPENED, f"{inside} touch /etc/tinderbox/x", check=False).rc != 0
    assert lab.ssh(OPENED, f"{inside} sh -c 'touch /var/lib/tinderbox/x && rm /var/lib/tinderbox/x'").rc == 0
    inspected = lab.ssh(OPENED, f"sudo docker inspect {server.container}").json[0]["HostConfig"]
    assert (inspected["Privileged"], inspected["SecurityOpt"][0]) == (False, "no-new-privileges")

    journal = lab.ssh(OPENED, f"sudo journalctl --no-pager -u {server.unit}").stdout
    for said in ("memory-gate: ", "await-ready: ready after "):
        assert said in journal
    # What the memory gate notes for the end of the server.
    assert lab.ssh(OPENED, f"test -s /run/tinderbox/{SERVICE}.before", check=False).rc == 0
    judged = lab.ssh(OPENED, f"systemd-analyze security --no-pager --threshold=30 {server.unit}", check=False)
    assert judged.rc == 0, judged.stdout.splitlines()[-1]


@pytest.mark.long
def test_the_neighbour_finds_only_ssh_and_what_the_fleet_file_opens(lab: Lab, opened: tuple[Path, Run]) -> None:
    found = open_ports(lab, MAIN, OPENED)
    ipv4 = found.pop(lab.address(OPENED))
    assert ipv4 == [SSH, PORT], listeners(lab, OPENED)
    # 0.0.0.0 is no IPv6 address.
    assert all(ports == [SSH] for ports in found.values()), (found, listeners(lab, OPENED))


@pytest.mark.long
def test_a_key_that_was_removed_is_made_anew_by_one_restart(lab: Lab, opened: tuple[Path, Run]) -> None:
    fleet, _ = opened
    old = lab.read(OPENED, KEY_FILE)
    lab.ssh(OPENED, f"sudo rm {KEY_FILE}")
    run = deployed(lab, fleet)
    assert run.rc == 0, run.text
    new = lab.read(OPENED, KEY_FILE)
    assert new != old
    url = f"http://{lab.address(OPENED)}:{PORT}/v1/chat/completions"
    for text, wanted in ((old, 401), (new, 200)):
        key = text.strip().partition("=")[2]
        assert status(lab, MAIN, url, f"-H 'Authorization: Bearer {key}'") == wanted


@pytest.mark.long
def test_the_key_goes_with_the_service(lab: Lab, opened: tuple[Path, Run]) -> None:
    fleet, _ = opened
    run = by_hand(lab, "remove", fleet, TINDERBOX_SERVICE=SERVICE)
    assert run.rc == 0, run.text
    assert lab.ssh(OPENED, f"test -e {KEY_FILE}", check=False).rc == 1
    assert [ports for ports in open_ports(lab, MAIN, OPENED).values() if ports != [SSH]] == []
