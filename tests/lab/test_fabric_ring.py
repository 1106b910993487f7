"""Three lab hosts in a ring: each cable has its networks, and one that is in the wrong port is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.fabric_lab import addresses, changes, fleet_with, lay, settle, with_netplan
from tests.lab.lab_driver import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
RING = ("spark-1", "spark-2", "spark-3")


def test_a_ring_of_three_answers_on_every_cable_and_a_wrong_cable_is_named(wide_lab: Lab, tmp_path: Path) -> None:
    lab, fleet = wide_lab, fleet_with(wide_lab, "ring", RING, {"topology": "ring", "network": "10.200.0.0/21"})
    none = fleet_with(lab, "no-ring", RING, None)
    with with_netplan(lab, RING, tmp_path):
        lay(lab, *((f"{one}/f0", f"{other}/f1") for one, other in zip(RING, (*RING[1:], RING[0]), strict=True)))
        try:
            run = settle(lab, fleet)
            assert run.rc == 0, run.text
            assert addresses(lab, "spark-1") == {
                "enp1s0f0np0": ("10.200.0.1/24", 9000), "enP2p1s0f0np0": ("10.200.1.1/24", 9000),
                "enp1s0f1np1": ("10.200.4.1/24", 9000), "enP2p1s0f1np1": ("10.200.5.1/24", 9000),
            }  # fmt: skip
            told = lab.read("spark-3", "/etc/tinderbox/fabric.env").splitlines()
            assert "NCCL_SOCKET_IFNAME=eth0" in told
            assert "NCCL_IB_SUBNET_AWARE_ROUTING=1" in told
            assert changes(settle(lab, fleet)) == 0

            # The two ends at spark-1 changed places: its cables lead to the wrong neighbours.
            lay(lab, ("spark-1/f1", "spark-2/f1"), ("spark-2/f0", "spark-3/f1"), ("spark-3/f0", "spark-1/f0"))
            wrong = settle(lab, fleet)
            assert wrong.rc == 1
            assert "port f0 (enp1s0f0np0, half 1 of 2) to spark-2: 10.200.0.2 (spark-2) does not answer" in wrong.text
            assert "spark-2: port f1 (enp1s0f1np1, half 1 of 2) to spark-1" in wrong.text
            assert "(enp1s0f0np0, half 1 of 2) to spark-3" not in wrong.text
        finally:
            settle(lab, none)
