"""Ports as real Sparks name them, and fabrics over them."""

from __future__ import annotations

from typing import Any

from modules.fabric import Port
from modules.spec.fabric import Fabric

# One ConnectX-7 as every Spark shows it: two ports, each on two PCIe links.
NAMES = {
    ("0000:01:00.0", "f0"): ("enp1s0f0np0", "rocep1s0f0"),
    ("0000:01:00.1", "f1"): ("enp1s0f1np1", "rocep1s0f1"),
    ("0002:01:00.0", "f0"): ("enP2p1s0f0np0", "roceP2p1s0f0"),
    ("0002:01:00.1", "f1"): ("enP2p1s0f1np1", "roceP2p1s0f1"),
}
HOSTS = ("spark-1", "spark-2", "spark-3")


def ports(*up: str, **changes: Any) -> tuple[Port, ...]:
    """The four halves; those of the ports named have a carrier."""
    return tuple(
        Port(
            **{
                "name": name,
                "pci": pci,
                "place": place,
                "mac": f"4c:bb:47:00:00:{number:02x}",
                "carrier": place in up,
                "mtu": 1500,
                "speed_mbps": 200_000 if place in up else None,
                "rdma": rdma,
                "rdma_state": "ACTIVE" if place in up else "DOWN",
                "firmware": "28.45.4028",
                "pcie_gts": 32.0,
                "pcie_width": 4,
                **changes,
            }
        )
        for number, ((pci, place), (name, rdma)) in enumerate(NAMES.items())
    )


def fabric(topology: str, count: int = 2, **settings: Any) -> Fabric:
    return Fabric.model_validate({"topology": topology, "members": HOSTS[:count], **settings})


MESH = [["spark-1/f0", "spark-2/f0"], ["spark-2/f1", "spark-3/f0"], ["spark-3/f1", "spark-1/f1"]]
