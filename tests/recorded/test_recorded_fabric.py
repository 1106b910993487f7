"""Verdicts on recorded measurements of real pairs, where that folder lies beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.fabric.findings import firmware_warning
from modules.fabric.verdict import Grade, judge_nccl, judge_rdma
from modules.facts.parse.kernel_log import parse_kernel_log
from modules.spec.fabric import Fabric

RECORDED = Path(__file__).parents[3] / "shared" / "recorded"
PAIR = Fabric(topology="direct", members=("spark-01", "spark-02"))
FIGURES = load_catalog().fabrics["direct"]

if RECORDED.is_dir():

    def test_a_link_that_was_recorded_with_mtu_1500_is_slow_by_that() -> None:
        output = (RECORDED / "ib_write_bw-01-MB-per-sec.txt").read_text()
        (line,) = judge_rdma(PAIR, FIGURES, {"one": output})
        assert (line.grade, line.measured) == (Grade.SLOW, "92.5 Gb/s by RDMA")
        assert "MTU 1500" in line.remedy

    @pytest.mark.parametrize(
        ("name", "grade", "words"),
        [
            ("nccl-tests-01-allgather-16g-dual-rail.txt", Grade.PASS, ""),
            ("nccl-tests-04-sendrecv-dual-rail.txt", Grade.PASS, ""),
            ("nccl-tests-02-allreduce-single-rail.txt", Grade.FAIL, "what one half of a port gives"),
        ],
    )
    def test_recorded_runs_of_nccl_are_told_apart(name: str, grade: Grade, words: str) -> None:
        (line,) = judge_nccl(PAIR, FIGURES, (RECORDED / name).read_text())
        assert line.grade is grade
        assert words in line.remedy

    def test_two_hosts_of_one_firmware_are_no_finding() -> None:
        text = (RECORDED / "kernel-17-mlx5-firmware-version-two-hosts.txt").read_text()
        versions = {str(one.host): one.version for one in parse_kernel_log(text).firmware}
        assert set(versions) == {"spark-01", "spark-02"}
        assert firmware_warning(versions) is None
