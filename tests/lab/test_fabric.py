"""The network between Sparks on lab hosts: real interfaces and netplan, a ConnectX-7 that is simulated and says so."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.fabric_lab import NETPLAN, addresses, changes, fleet_with, lay, of_the_host, settle, with_netplan
from tests.lab.lab_driver import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
PAIR = ("spark-1", "spark-2")
SNAPSHOTS = Path(__file__).parents[1] / "samples" / "netplan"
PROGRAM = "/usr/local/lib/tinderbox/fabric_apply.py"
FOREIGN = "network:\n  version: 2\n  ethernets:\n    enp1s0f0np0:\n      addresses: [10.77.0.1/24]\n"


@pytest.fixture(scope="module")
def pair(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with with_netplan(lab, PAIR, tmp_path_factory.mktemp("netplan")):
        yield lab


@pytest.fixture
def cabled(pair: Lab) -> Iterator[Lab]:
    """By f0 of the one and f1 of the other, as pairs are at times."""
    lay(pair, ("spark-1/f0", "spark-2/f1"))
    yield pair
    for host in PAIR:
        pair.ssh(host, "sudo rm -rf /etc/netplan/*.yaml /var/lib/tinderbox/fabric")
        pair.ssh(host, "sudo netplan generate; sudo networkctl reload")


def test_a_pair_is_shown_configured_read_back_repaired_and_undone(cabled: Lab) -> None:
    fleet, none = fleet_with(cabled, "pair", PAIR, {"topology": "direct"}), fleet_with(cabled, "none", PAIR, None)
    settle(cabled, none)
    before = {host: of_the_host(cabled, host) for host in PAIR}

    dry = cabled.pyinfra("deploys/fabric.py", "--dry", fleet=fleet)
    assert dry.rc == 0, dry.text
    assert "[spark-2] +      addresses: [192.168.100.2/24]" in dry.text
    assert {host: of_the_host(cabled, host) for host in PAIR} == before

    run = settle(cabled, fleet)
    assert run.rc == 0, run.text
    assert addresses(cabled, "spark-1") == {
        "enp1s0f0np0": ("192.168.100.1/24", 9000), "enP2p1s0f0np0": ("192.168.101.1/24", 9000)
    }  # fmt: skip
    assert addresses(cabled, "spark-2") == {
        "enp1s0f1np1": ("192.168.100.2/24", 9000), "enP2p1s0f1np1": ("192.168.101.2/24", 9000)
    }  # fmt: skip
    assert cabled.ssh("spark-1", f"sudo stat -c '%a %U' {NETPLAN}").stdout == "600 root\n"
    assert "NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1" in cabled.read("spark-2", "/etc/tinderbox/fabric.env")
    assert changes(settle(cabled, fleet)) == 0
    assert cabled.pyinfra("deploys/fabric.py", "--dry", fleet=fleet).text.count("192.168.10") == 0

    # A hand edit of each kind, and the next run.
    cabled.ssh("spark-1", "sudo ip addr del 192.168.100.1/24 dev enp1s0f0np0")
    cabled.ssh("spark-2", f"sudo chmod 644 {NETPLAN}; sudo ip link set enP2p1s0f1np1 mtu 1500")
    repaired = settle(cabled, fleet)
    assert (repaired.rc, changes(repaired)) == (0, 2), repaired.text
    assert changes(settle(cabled, fleet)) == 0

    assert settle(cabled, none).rc == 0
    assert {host: of_the_host(cabled, host) for host in PAIR} == before
    assert changes(settle(cabled, none)) == 0


def test_the_cable_that_fails_is_named_with_what_is_wrong(cabled: Lab) -> None:
    fleet = fleet_with(cabled, "pair", PAIR, {"topology": "direct"})
    assert settle(cabled, fleet).rc == 0

    # One half of the peer's port drops whatever it gets; everything else is as it should be.
    cabled.ssh("spark-2", "sudo iptables -I INPUT -i enP2p1s0f1np1 -p icmp -j DROP")
    try:
        run = settle(cabled, fleet, "--limit", "spark-1")
    finally:
        cabled.ssh("spark-2", "sudo iptables -D INPUT -i enP2p1s0f1np1 -p icmp -j DROP")
    assert run.rc == 1
    assert "port f0 (enP2p1s0f0np0, half 2 of 2) to spark-2: 192.168.101.2 (spark-2) does not answer" in run.text
    assert "(enp1s0f0np0," not in run.text

    # Small packets pass, large ones do not: a switch or a neighbour with another MTU.
    cabled.ssh("spark-2", "sudo iptables -I INPUT -i enp1s0f1np1 -p icmp -m length --length 1501:65535 -j DROP")
    try:
        run = settle(cabled, fleet, "--limit", "spark-1")
    finally:
        cabled.ssh("spark-2", "sudo iptables -D INPUT -i enp1s0f1np1 -p icmp -m length --length 1501:65535 -j DROP")
    assert run.rc == 1
    assert "packets of 9000 bytes do not pass to 192.168.100.2" in run.text

    # Pulled: the port stays the fabric's.
    cabled.ssh("spark-2", "sudo ip link set enp1s0f1np1 down; sudo ip link set enP2p1s0f1np1 down")
    run = settle(cabled, fleet, "--limit", "spark-1")
    assert run.rc == 1
    assert run.text.count("no carrier; plug the cable in at both ends") >= 2
    assert NETPLAN in cabled.ssh("spark-1", f"ls {NETPLAN}").stdout

    # A neighbour that can not be reached at all keeps this host from nothing.
    dead = yaml.safe_load(fleet.read_text())
    dead["hosts"]["spark-2"]["ssh"]["port"] = 1
    gone = fleet.with_name("fabric-gone.yaml")
    gone.write_text(yaml.safe_dump(dead, sort_keys=False))
    run = settle(cabled, gone)
    assert "spark-2 has failed in this run: whether its cable answers is not asked" in run.text
    assert "no carrier" not in run.text
    assert (run.rc, changes(run)) == (1, 0)


def test_what_others_configured_is_refused_adopted_and_brought_back(cabled: Lab) -> None:
    fleet = fleet_with(cabled, "pair", PAIR, {"topology": "direct"})
    adopting = fleet_with(cabled, "adopt", PAIR, {"topology": "direct", "adopt": True})
    none = fleet_with(cabled, "none", PAIR, None)
    cabled.write("spark-1", NETPLAN, FOREIGN)
    cabled.write("spark-1", "/etc/netplan/60-own.yaml", FOREIGN.replace("10.77", "10.78"))
    cabled.ssh("spark-1", "sudo chmod 600 /etc/netplan/*; sudo netplan generate; sudo networkctl reload; sleep 1")
    cabled.ssh("spark-1", "sudo networkctl reconfigure enp1s0f0np0; sleep 1")
    assert set(addresses(cabled, "spark-1")["enp1s0f0np0"][0].split()) == {"10.77.0.1/24", "10.78.0.1/24"}

    refused = settle(cabled, fleet)
    assert refused.rc == 1
    assert f"spark-1: {NETPLAN} is not Tinderbox's and configures enp1s0f0np0; remove it" in refused.text
    assert "/etc/netplan/60-own.yaml is not Tinderbox's" in refused.text
    assert cabled.read("spark-1", NETPLAN) == FOREIGN

    adopted = settle(cabled, adopting)
    assert adopted.rc == 0, adopted.text
    assert addresses(cabled, "spark-1")["enp1s0f0np0"] == ("192.168.100.1/24", 9000)
    assert cabled.ssh("spark-1", "ls /etc/netplan").stdout.split() == ["40-cx7.yaml"]
    assert changes(settle(cabled, adopting)) == 0

    assert settle(cabled, none).rc == 0
    assert cabled.read("spark-1", NETPLAN) == FOREIGN
    assert set(addresses(cabled, "spark-1")["enp1s0f0np0"][0].split()) == {"10.77.0.1/24", "10.78.0.1/24"}
    cabled.ssh("spark-1", "sudo rm /etc/netplan/60-own.yaml")


def test_a_change_that_fails_or_that_nobody_confirms_is_taken_back(cabled: Lab) -> None:
    fleet, none = fleet_with(cabled, "pair", PAIR, {"topology": "direct"}), fleet_with(cabled, "none", PAIR, None)
    settle(cabled, none)
    before = of_the_host(cabled, "spark-1")

    # networkd can not be started, so the file is taken away again.
    cabled.ssh("spark-1", "sudo systemctl mask --now systemd-networkd systemd-networkd.socket")
    try:
        run = settle(cabled, fleet)
    finally:
        cabled.ssh("spark-1", "sudo systemctl unmask systemd-networkd systemd-networkd.socket")
        cabled.ssh("spark-1", "sudo systemctl start systemd-networkd")
    assert run.rc == 1
    assert "systemctl start systemd-networkd.service ended with exit status 1" in run.text
    assert NETPLAN not in "\n".join(of_the_host(cabled, "spark-1"))

    # A file of somebody else's that netplan can not read: nothing is touched.
    cabled.write("spark-1", "/etc/netplan/99-broken.yaml", "network: [\n")
    run = settle(cabled, fleet, "--limit", "spark-1")
    cabled.ssh("spark-1", "sudo rm /etc/netplan/99-broken.yaml")
    assert run.rc == 1
    assert "netplan refuses these files, and nothing was changed" in run.text
    assert "/etc/netplan/99-broken.yaml" in run.text

    # Nobody confirms, as when the host can not be reached any more.
    wish: dict[str, Any] = {
        "path": NETPLAN, "move": [], "confirm_s": 2,
        "text": (SNAPSHOTS / "pair-by-f0.yaml").read_text(),
        "ports": {
            "enp1s0f0np0": {"address": "192.168.100.1/24", "mtu": 9000},
            "enP2p1s0f0np0": {"address": "192.168.101.1/24", "mtu": 9000},
        },
    }  # fmt: skip
    cabled.ssh("spark-1", f"echo {shlex.quote(json.dumps(wish))} | sudo python3 {PROGRAM} apply")
    until = time.monotonic() + 60
    while time.monotonic() < until and cabled.ssh("spark-1", f"sudo test -e {NETPLAN}", check=False).rc == 0:
        time.sleep(1)
    said = cabled.ssh("spark-1", f"sudo python3 {PROGRAM} confirm", check=False)
    assert (said.rc, "nobody confirmed in time" in said.text) == (1, True)
    settle(cabled, none)
    assert of_the_host(cabled, "spark-1") == before

    # And the next run finishes.
    assert settle(cabled, fleet).rc == 0
    assert changes(settle(cabled, fleet)) == 0
    assert settle(cabled, none).rc == 0


def test_what_somebody_has_written_and_not_applied_is_not_brought_about(cabled: Lab) -> None:
    fleet, none = fleet_with(cabled, "pair", PAIR, {"topology": "direct"}), fleet_with(cabled, "none", PAIR, None)
    settle(cabled, none)
    other = "/etc/netplan/70-later.yaml"
    made = "/run/systemd/network/10-netplan-eth9.network"
    cabled.write("spark-1", other, FOREIGN.replace("enp1s0f0np0", "eth9"))
    cabled.ssh("spark-1", f"sudo chmod 600 {other}")
    for run in (cabled.pyinfra("deploys/fabric.py", "--dry", fleet=fleet), settle(cabled, fleet)):
        assert f"spark-1: the host's netplan files say something new of eth9 that was not applied ({made}" in run.text
    assert run.rc == 1
    assert cabled.ssh("spark-1", f"sudo test -e {NETPLAN} || sudo test -e {made}", check=False).rc != 0
    # Applied, it is nobody's business.
    cabled.ssh("spark-1", "sudo netplan generate; sudo networkctl reload")
    assert settle(cabled, fleet).rc == 0
    assert cabled.ssh("spark-1", f"sudo rm {other}; sudo netplan generate; sudo networkctl reload").rc == 0
    assert changes(settle(cabled, fleet)) == 0
    assert settle(cabled, none).rc == 0


def test_a_restart_takes_back_what_nobody_has_confirmed_before_the_network_is_configured(cabled: Lab) -> None:
    none = fleet_with(cabled, "none", PAIR, None)
    assert settle(cabled, none, "--limit", "spark-1").rc == 0
    wish: dict[str, Any] = {
        "path": NETPLAN, "move": [], "confirm_s": 600,
        "text": (SNAPSHOTS / "pair-by-f0.yaml").read_text(),
        "ports": {"enp1s0f0np0": {"address": "192.168.100.1/24", "mtu": 9000}},
    }  # fmt: skip
    # On a lab host networkd has no interface to wait for.
    waits = "systemd-networkd-wait-online"
    cabled.ssh("spark-1", f"sudo systemctl enable systemd-networkd; sudo systemctl mask {waits}")
    try:
        cabled.ssh("spark-1", f"echo {shlex.quote(json.dumps(wish))} | sudo python3 {PROGRAM} apply")
        assert addresses(cabled, "spark-1")["enp1s0f0np0"] == ("192.168.100.1/24", 9000)
        cabled.restart("spark-1")
        lay(cabled, ("spark-1/f0", "spark-2/f1"))
        left = of_the_host(cabled, "spark-1")
        assert not any("/etc/netplan" in line or "fabric" in line or "10-netplan" in line for line in left), left
        assert cabled.ssh("spark-1", "systemctl is-active systemd-networkd").stdout == "active\n"
        time.sleep(2)
        assert addresses(cabled, "spark-1") == {}
        told = cabled.ssh("spark-1", "sudo journalctl -o cat -n 2000 --no-pager").stdout.splitlines()
        order = [
            max(number for number, line in enumerate(told) if line.startswith(did))
            for did in ("Finished tinderbox-fabric-unconfirmed.service", "Starting systemd-networkd.service")
        ]
        assert order == sorted(order), told
    finally:
        cabled.ssh("spark-1", f"sudo systemctl disable systemd-networkd; sudo systemctl unmask {waits}", check=False)
