"""The gate of the links between two lab hosts. The programs that measure are simulated and say so; all else is real."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.fabric_lab import changes, fleet_with, lay, settle, with_netplan
from tests.lab.lab_driver import Lab, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]
PAIR = ("spark-1", "spark-2")
_FAKE = Path(__file__).with_name("fake_perftest.py")
_PROGRAMS = "/usr/local/bin/ib_write_bw /usr/local/bin/mpirun /usr/local/bin/all_gather_perf"
GOOD = {"rocep1s0f0": 110.0, "roceP2p1s0f0": 109.0, "rocep1s0f1": 110.5, "roceP2p1s0f1": 109.5, "nccl": 20.4}


@pytest.fixture
def measurable(lab: Lab, tmp_path: Path) -> Iterator[Lab]:
    with with_netplan(lab, PAIR, tmp_path):
        lay(lab, ("spark-1/f0", "spark-2/f1"))
        for host in PAIR:
            lab.write(host, "/usr/local/bin/ib_write_bw", _FAKE.read_text())
            lab.ssh(host, "sudo chmod 755 /usr/local/bin/ib_write_bw; sudo rm -f /tmp/fabric-runs")
            figures(lab, host)
        lab.ssh("spark-1", "for each in mpirun all_gather_perf; do sudo ln -sf ib_write_bw /usr/local/bin/$each; done")
        yield lab
        none = fleet_with(lab, "none", PAIR, None)
        settle(lab, none)
        for host in PAIR:
            lab.ssh(host, f"sudo rm -rf {_PROGRAMS} /etc/tinderbox-lab/rdma.json /tmp/fabric-runs", check=False)
            lab.ssh(host, "sudo rm -rf /var/lib/tinderbox/fabric", check=False)


def figures(lab: Lab, host: str, **changed: float) -> None:
    lab.write(host, "/etc/tinderbox-lab/rdma.json", json.dumps({**GOOD, **changed}))


def gate(lab: Lab, fleet: Path, *arguments: str) -> Run:
    return lab.pyinfra("deploys/fabric_gate.py", "-y", "--json", *arguments, fleet=fleet)


def runs(lab: Lab, host: str) -> list[str]:
    return lab.ssh(host, "cat /tmp/fabric-runs 2>/dev/null; sudo rm -f /tmp/fabric-runs").stdout.splitlines()


def test_links_are_measured_once_judged_by_name_and_measured_again_when_there_is_a_reason(measurable: Lab) -> None:
    lab, fleet = measurable, fleet_with(measurable, "pair", PAIR, {"topology": "direct"})
    early = gate(lab, fleet)
    assert early.rc == 1
    assert "run deploys/fabric.py first" in early.text
    assert settle(lab, fleet).rc == 0

    first = gate(lab, fleet)
    assert first.rc == 0, first.text
    assert len(runs(lab, "spark-2")) == 2
    served = runs(lab, "spark-1")
    assert sum(line.startswith("ib_write_bw") for line in served) == 2
    (test,) = [line for line in served if line.startswith("mpirun")]
    assert "-H 192.168.100.1,192.168.100.2" in test
    assert test.split("-e ")[1].split()[0] == str(64 << 20)
    assert (
        "spark-1 to spark-2, cable 1, half 2: 109.5 Gb/s by RDMA (pass"
        in lab.pyinfra("deploys/fabric_gate.py", "-y", "-v", fleet=fleet).text
    )
    assert lab.ssh("spark-1", "systemctl list-units --no-legend 'tinderbox-fabric*'").stdout == ""

    second = gate(lab, fleet)
    assert (second.rc, changes(second)) == (0, 0), second.text
    assert runs(lab, "spark-1") + runs(lab, "spark-2") == []

    # A change of a bound is judged by what was measured; a failure is measured again.
    bounded = fleet_with(lab, "bounded", PAIR, {"topology": "direct", "gate": {"rdma_min_gbps": 109.8, "nccl": False}})
    slow = gate(lab, bounded)
    assert slow.rc == 1
    assert "half 2: 109.5 Gb/s by RDMA (fail; at least 109.8 Gb/s" in slow.text

    # The state that gives 13 Gb/s: named, and gone after it was put right.
    for host in PAIR:
        figures(lab, host, rocep1s0f1=13.2, roceP2p1s0f1=13.1, rocep1s0f0=13.2, roceP2p1s0f0=13.1)
        lab.ssh(host, "sudo rm -f /var/lib/tinderbox/fabric/measured.json")
    bad = gate(lab, fleet)
    assert bad.rc == 1
    assert "13.2 Gb/s by RDMA (fail" in bad.text
    assert "the state that gives about 13 Gb/s on a link that says 200" in bad.text
    for host in PAIR:
        figures(lab, host)
    again = gate(lab, fleet)
    assert again.rc == 0, again.text

    alone = gate(lab, fleet, "--limit", "spark-2")
    assert alone.rc == 1
    assert "spark-1 must take part in this run, too" in alone.text
