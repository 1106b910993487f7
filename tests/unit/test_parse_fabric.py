"""RDMA, NCCL and links."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.facts.parse.errors import ParseError
from modules.facts.parse.ib_write_bw import Bandwidth, parse_ib_write_bw
from modules.facts.parse.ibv_devinfo import HcaPort, parse_ibv_devinfo
from modules.facts.parse.ip_link import Link, parse_ip_link
from modules.facts.parse.nccl_info import parse_nccl_info
from modules.facts.parse.nccl_tests import parse_nccl_test

SAMPLES = Path(__file__).parents[1] / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_the_peak_and_not_the_average_tells_how_fast_a_link_is() -> None:
    test = parse_nccl_test(sample("nccl-tests.txt"))
    assert (test.test, test.ranks) == ("all_reduce_perf", ("spark-01", "spark-02"))
    assert (test.peak.size, test.peak.busbw, test.average_busbw) == (536870912, 21.47, 10.75)
    assert (test.messages[1].out_of_place.wrong, test.messages[1].in_place.wrong) == (0, None)
    assert (test.wrong, test.out_of_bounds) == (0, 0)


def test_wrong_values_are_counted() -> None:
    text = (
        sample("nccl-tests.txt")
        .replace("0.04       0\n", "0.04       7\n")
        .replace("values : 0 OK", "values : 7 FAILED")
    )
    assert (parse_nccl_test(text).wrong, parse_nccl_test(text).out_of_bounds) == (7, 7)


@pytest.mark.parametrize(
    "text",
    [
        "",
        sample("nccl-tests.txt").partition("# Out of")[0],
        sample("nccl-tests.txt").replace("    28.12    0.04", ""),
        sample("nccl-tests.txt").replace("25009.3", "fast"),
        "\n".join(line for line in sample("nccl-tests.txt").splitlines() if " float " not in line),
    ],
)
def test_an_nccl_test_that_is_cut_off_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_nccl_test(text)


def test_both_spellings_of_the_transport_and_each_hosts_own_ports() -> None:
    text = (
        "spark-01:10:12 [0] NCCL INFO NET/IB: Using [0]rocep1s0f1:1/RoCE [1]roceP2p1s0f1:1/RoCE [RO]; "
        "OOB enp1s0f1np1:10.0.0.1<0>\n"
        "spark-02:20:22 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [RO]; OOB enp1s0f0np0:10.0.0.2<0>\n"
    )
    one, two = parse_nccl_info(text)
    assert (one.host, one.pid, one.rdma) == ("spark-01", 10, True)
    assert (one.devices, one.out_of_band) == (("rocep1s0f1:1", "roceP2p1s0f1:1"), "enp1s0f1np1")
    assert (two.devices, two.out_of_band) == (("rocep1s0f0:1",), "enp1s0f0np0")


def test_a_fall_back_to_sockets_is_seen() -> None:
    text = (
        "spark-01:10:12 [0] NCCL INFO NET/IB : No device found.\n"
        "spark-01:10:12 [0] NCCL INFO NET/Socket : Using [0]eth0:192.168.1.5<0>\n"
    )
    (transport,) = parse_nccl_info(text)
    assert (transport.rdma, transport.devices, transport.out_of_band) == (False, ("eth0",), None)
    with pytest.raises(ParseError, match="NCCL_DEBUG"):
        parse_nccl_info("NCCL version 2.28.9+cuda13.0\n")


def test_gigabits_as_they_are_and_megabytes_turned_into_them() -> None:
    result = parse_ib_write_bw(sample("ib-write-bw-gbits.txt"))
    assert (result.device, result.link_type, result.gid_index) == ("roceP2p1s0f1", "Ethernet", 3)
    assert result.rows[1] == Bandwidth(131072, 20000, 109.31, 109.1, 0.104046)
    megabytes = sample("ib-write-bw-gbits.txt").replace("Gb/sec", "MB/sec")
    assert parse_ib_write_bw(megabytes).rows[0].peak_gbps == round(109.2 * 2**20 * 8 / 1e9, 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        sample("ib-write-bw-gbits.txt").partition(" 65536")[0],
        sample("ib-write-bw-gbits.txt").replace("Gb/sec", "kB/sec"),
        sample("ib-write-bw-gbits.txt").replace("		   0.207806", ""),
        "Couldn't connect to 10.0.0.2:18515\n",
    ],
)
def test_a_bandwidth_test_that_failed_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_ib_write_bw(text)


def test_adapters_with_their_ports() -> None:
    down, up = parse_ibv_devinfo(sample("ibv-devinfo.txt"))
    assert (down.name, down.firmware, down.board) == ("rocep1s0f0", "28.45.4028", "NVD0000000087")
    assert down.ports == (HcaPort(1, "DOWN", 1024, "Ethernet"),)
    assert up.ports == (HcaPort(1, "ACTIVE", 4096, "Ethernet"),)
    assert parse_ibv_devinfo("No IB devices found\n") == ()


@pytest.mark.parametrize(
    "text",
    ["", "bash: ibv_devinfo: not found\n", sample("ibv-devinfo.txt")[:-160], "\tfw_ver:\t28.45.4028\n"],
)
def test_adapters_that_are_cut_off_are_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_ibv_devinfo(text)


def test_links_with_and_without_a_cable() -> None:
    text = (
        "3: enp1s0f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT qlen 1000\n"
        "    link/ether 4c:bb:47:00:00:01 brd ff:ff:ff:ff:ff:ff\n"
        "9: veth1@if8: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN mode DEFAULT group default\n"
    )
    up, down = parse_ip_link(text)
    assert up == Link(3, "enp1s0f0np0", 9000, "UP", True, "4c:bb:47:00:00:01")
    assert down == Link(9, "veth1", 1500, "DOWN", False, None)


@pytest.mark.parametrize("text", ["", 'Device "enp9" does not exist.\n'])
def test_a_link_that_is_not_there_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_ip_link(text)
