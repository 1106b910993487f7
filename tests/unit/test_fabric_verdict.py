"""Which links are too slow, and which known bad state it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.fabric.measuring import key_of, measured_links, part_of
from modules.fabric.verdict import Grade, judge_nccl, judge_rdma
from modules.spec.fabric import Fabric
from tests.unit.fabric_samples import MESH, fabric
from tests.unit.test_fabric_findings import planned

SAMPLES = Path(__file__).parents[1] / "samples"
RDMA, NCCL = ((SAMPLES / name).read_text() for name in ("ib-write-bw-gbits.txt", "nccl-tests.txt"))
PAIR = fabric("direct")
FIGURES = load_catalog().fabrics
SOCKETS = "spark-1:10:12 [0] NCCL INFO NET/Socket : Using [0]enP7s7:10.0.0.11<0>\n"


def at(gbps: float) -> str:
    """What ib_write_bw prints for that bandwidth."""
    return re.sub(r"(\d+\s+\d+\s+)[\d.]+(\s+)[\d.]+(\s+[\d.]+)\n", rf"\g<1>{gbps}\g<2>{gbps}\g<3>\n", RDMA)


def nccl_at(gbs: float) -> str:
    """What nccl-tests prints where its best message has that bus bandwidth."""
    return NCCL.replace("21.47", f"{gbs:.2f}").replace("21.45", f"{gbs:.2f}")


def graded(wanted: Fabric = PAIR, **outputs: str) -> dict[str, tuple[Grade, str]]:
    return {line.what: (line.grade, line.remedy) for line in judge_rdma(wanted, FIGURES[wanted.topology], outputs)}


def test_links_as_fast_as_others_pass() -> None:
    assert graded(one=at(111.2), two=at(109.1)) == {"one": (Grade.PASS, ""), "two": (Grade.PASS, "")}


@pytest.mark.parametrize(
    ("one", "two", "grade", "words"),
    [
        (13.1, 13.1, Grade.FAIL, "about 13 Gb/s on a link that says 200: unplug the cables"),
        (55.0, 110.0, Grade.FAIL, "one half is slower than the other"),
        (92.5, 92.5, Grade.SLOW, "about 92 Gb/s is what MTU 1500 gives"),
        (55.0, 55.0, Grade.FAIL, "see the port's warnings above"),
    ],
)
def test_known_bad_states_of_a_link(one: float, two: float, grade: Grade, words: str) -> None:
    found, remedy = graded(one=at(one), two=at(two))["one"]
    assert found is grade
    assert words in remedy


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("Couldn't connect to 192.168.100.1:18515\n", "nothing filters TCP ports 18515"),
        ("Couldn't allocate MR\nFailed to create MR\n", "wants kho=off"),
        ("IB device rocep1s0f0 not found\n", "sudo modprobe mlx5_ib"),
        ("", "takes part in this run"),
    ],
)
def test_a_test_that_did_not_end_is_a_failure_with_a_remedy(output: str, words: str) -> None:
    found, remedy = graded(one=output)["one"]
    assert found is Grade.FAIL
    assert words in remedy


def test_the_fleet_files_own_bound_counts() -> None:
    assert graded(fabric("direct", gate={"rdma_min_gbps": 60}), one=at(70))["one"][0] is Grade.SLOW
    assert graded(fabric("direct", gate={"rdma_min_gbps": 110.5}), one=at(110))["one"][0] is Grade.FAIL


def nccl(output: str, wanted: Fabric = PAIR) -> list[tuple[Grade, str]]:
    return [(line.grade, line.remedy) for line in judge_nccl(wanted, FIGURES[wanted.topology], output)]


def test_nccl_is_judged_by_its_best_message_and_not_by_the_average() -> None:
    assert nccl(NCCL) == [(Grade.PASS, "")]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (nccl_at(3.1), "about 3 GB/s comes of a wrong NCCL_IB_HCA"),
        (nccl_at(13.9), "about 13.9 GB/s is what one half of a port gives"),
        (SOCKETS + NCCL, "NCCL fell back to sockets"),
        ("", "run it by hand"),
        ("root@192.168.100.2: Permission denied (publickey).\n", "give root of the first member a key"),
    ],
)
def test_known_bad_states_of_nccl(output: str, words: str) -> None:
    ((grade, remedy),) = nccl(output)
    assert grade is Grade.FAIL
    assert words in remedy


def test_wrong_values_fail_however_fast() -> None:
    wrong = NCCL.replace("0.04       0\n", "0.04       7\n").replace("values : 0 OK", "values : 7 FAILED")
    assert Grade.FAIL in {grade for grade, _ in nccl(wrong)}


def test_a_topology_without_published_figures_is_measured_and_not_judged() -> None:
    assert nccl(nccl_at(9), fabric("ring", 3)) == [(Grade.NONE, "")]
    assert nccl(nccl_at(3), fabric("direct", gate={"nccl_bytes": 1 << 20})) == [(Grade.NONE, "")]
    assert nccl(nccl_at(9), fabric("ring", 3, gate={"nccl_min_gbs": 10}))[0][0] is Grade.FAIL


def test_every_half_of_every_cable_is_measured_once_at_a_port_of_its_own() -> None:
    cases: list[tuple[Fabric, int, int]] = [
        (PAIR, 1, 2), (PAIR, 2, 4), (fabric("ring", 3), 2, 6), (fabric("mesh", 3, cables=MESH), 2, 6),
        (fabric("switch", 3), 1, 4),
    ]  # fmt: skip
    for wanted, slots, count in cases:
        links = measured_links(wanted, slots)
        assert len(links) == len({link.port for link in links}) == len({link.name for link in links}) == count
        assert all(link.server != link.client for link in links)


@pytest.mark.parametrize("change", [{"firmware": "28.44.1036"}, {"speed_mbps": 100_000}])
def test_a_measurement_holds_until_something_changes(change: dict[str, Any]) -> None:
    one, other = part_of(planned(), "6.17.0-1029"), part_of(planned(**change), "6.17.0-1029")
    key = key_of(PAIR, {"spark-1": one, "spark-2": one})
    assert key == key_of(PAIR, {"spark-2": one, "spark-1": one})
    assert key != key_of(PAIR, {"spark-1": one, "spark-2": other})
    assert key != key_of(PAIR, {"spark-1": one, "spark-2": part_of(planned(), "7.0.0-1019")})
    assert key != key_of(fabric("direct", gate={"nccl_bytes": 1 << 20}), {"spark-1": one, "spark-2": one})
