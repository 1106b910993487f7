"""What a host gets for its fabric, that one that has it gets nothing, and what is refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from modules.fabric import planned_ports
from modules.fabric.environment import ENVIRONMENT
from modules.fabric.findings import possible_pings
from modules.fabric.kernel import GRUB, GRUB_TEXT
from modules.fabric.netplan import NETPLAN, netplan_text
from modules.fabric.wish import FILES, LIMITS, Configured
from modules.facts.fabric import FabricState, FabricSurvey, Ping, fabric_state
from modules.facts.files import FileState
from modules.facts.netplan import NetplanUnapplied
from modules.operations import fabric as operations
from modules.operations.fabric import fabric_answers, fabric_settled, wanted_files
from modules.operations.fabric_netplan import PROGRAM
from modules.spec.fabric import Fabric
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.fabric_samples import fabric, ports

PAIR = fabric("direct")
BARE = FabricState(
    kernel="6.17.0-1029-nvidia", arguments=(), ports=ports("f0"), others={"enP7s7": ("10.0.0.11/24",)},
    management="enP7s7", foreign=(), text=None, files=dict.fromkeys([NETPLAN, *FILES]), has_netplan=True,
    boots_with=(), pending=False,
)  # fmt: skip


def as_file(text: str | None, mode: str = "644") -> FileState | None:
    return None if text is None else FileState(hashlib.sha256(text.encode()).hexdigest(), mode, "root:root")


def settled(wanted: Fabric = PAIR, bare: FabricState = BARE) -> FabricState:
    """The host after it was brought to what is wanted."""
    plan = planned_ports(wanted, "spark-1", bare.ports)
    given = {port.name: str(port.address) for port in plan}
    there = tuple(
        replace(port, addresses=(given[port.name],), mtu=9000) if port.name in given else port for port in bare.ports
    )
    text = netplan_text(wanted, plan)
    files = {file.path: as_file(file.content, file.mode) for file in wanted_files(wanted, plan, bare)}
    pings = tuple(Ping(source, to, size, "") for source, to, size in possible_pings(wanted, "spark-1"))
    return replace(bare, ports=there, text=text, files={**files, NETPLAN: as_file(text, "600")}, pings=pings)


def given(
    state: FabricState | None, wanted: Fabric | None = PAIR, unapplied: dict[str, str] | None = None
) -> tuple[StubHost, list[str]]:
    host = StubHost({FabricSurvey: state, NetplanUnapplied: unapplied or {}})
    commands = commands_of(host, fabric_settled, fabric=wanted, member="spark-1")
    return host, [command.get_raw_value() for command in commands]


def test_a_bare_host_is_shown_the_diff_and_gets_the_files_and_a_guarded_change() -> None:
    host, commands = given(BARE)
    assert [command.split()[-2] for command in commands[:-2]] == [ENVIRONMENT, LIMITS]
    assert commands[-2:] == [f"/usr/bin/python3 {PROGRAM} apply", f"/usr/bin/python3 {PROGRAM} confirm"]
    assert "+      addresses: [192.168.100.1/24]" in host.logged
    assert [fact for fact, _ in host.asked] == [FabricSurvey, NetplanUnapplied]


@pytest.mark.parametrize("undo", [False, True])
def test_what_others_have_written_and_not_applied_is_not_brought_about(undo: bool) -> None:
    state = settled() if undo else BARE
    theirs = {"/run/systemd/network/10-netplan-enP7s7.network": "enP7s7"}
    host, (refused,) = given(state, None if undo else PAIR, theirs)
    assert "say something new of enP7s7 that was not applied" in refused
    assert "netplan try" in refused
    assert host.logged == [] or not any("10-netplan" in line for line in host.logged)
    # What concerns the fabric's own ports is ours to settle; and who needs no change is not asked.
    own = {"/run/systemd/network/10-netplan-enp1s0f0np0.network": "enp1s0f0np0"}
    assert "confirm" in given(state, None if undo else PAIR, own)[1][-1]
    assert given(settled(), unapplied=theirs)[1] == []


def test_a_host_that_has_it_gets_nothing_and_is_asked_once() -> None:
    host, commands = given(settled())
    assert commands == []
    assert host.noops
    commands_of(host, fabric_answers, fabric=PAIR, member="spark-1")
    assert len(host.asked) == 1


def test_a_host_without_a_fabric_that_never_had_one_gets_nothing() -> None:
    host, commands = given(BARE, None)
    assert (commands, bool(host.noops)) == ([], True)


def test_taking_the_key_out_takes_all_away() -> None:
    host = StubHost({FabricSurvey: settled(), NetplanUnapplied: {}})
    (*files, undo, confirm) = commands_of(host, fabric_settled, fabric=None, member="spark-1")
    assert [file.get_raw_value().split()[-1] for file in files] == [ENVIRONMENT, LIMITS]
    wish = json.loads(undo.connector_arguments["_stdin"])
    assert (wish["text"], wish["ports"]) == (None, {})
    assert confirm.get_raw_value().endswith("confirm")


@pytest.mark.parametrize(
    "change",
    [
        {"pending": True},
        {"files": {**settled().files, NETPLAN: as_file(settled().text, "644")}},
        {"ports": tuple(replace(port, addresses=()) for port in settled().ports)},
        {"ports": tuple(replace(port, mtu=1500) for port in settled().ports)},
    ],
    ids=["not confirmed", "another mode", "an address is gone", "another MTU"],
)
def test_a_hand_edit_or_a_cut_is_repaired(change: dict[str, Any]) -> None:
    _, commands = given(replace(settled(), **change))
    assert commands == [f"/usr/bin/python3 {PROGRAM} apply", f"/usr/bin/python3 {PROGRAM} confirm"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"has_netplan": False}, "sudo apt-get install netplan.io"),
        ({"ports": ()}, "no ConnectX-7 port was found"),
        ({"others": {"enP7s7": ("192.168.100.9/24",)}}, "overlaps fabric.network"),
        ({"foreign": (Configured(NETPLAN, ("enp1s0f0np0",), alone=True),)}, "is not Tinderbox"),
    ],
)
def test_what_can_not_be_is_refused_and_nothing_is_changed(change: dict[str, Any], words: str) -> None:
    _, (refusal,) = given(replace(BARE, **change))
    assert words in refusal
    assert "exit 1" in refusal
    assert "spark-1: " in refusal


def test_files_of_others_are_moved_away_where_that_is_asked_for() -> None:
    theirs = (Configured("/etc/netplan/60-own.yaml", ("enp1s0f0np0",), alone=True),)
    host = StubHost({FabricSurvey: replace(BARE, foreign=theirs), NetplanUnapplied: {}})
    adopting = fabric("direct", adopt=True)
    *_, change, _ = commands_of(host, fabric_settled, fabric=adopting, member="spark-1")
    assert json.loads(change.connector_arguments["_stdin"])["move"] == ["/etc/netplan/60-own.yaml"]


def test_the_port_by_which_the_host_reaches_everybody_is_not_taken_even_where_files_are() -> None:
    host = StubHost({FabricSurvey: replace(BARE, routed=("enp1s0f0np0",))})
    (refusal,) = commands_of(host, fabric_settled, fabric=fabric("direct", adopt=True), member="spark-1")
    assert "and the fabric would take it away" in refusal.get_raw_value()
    assert "exit 1" in refusal.get_raw_value()
    assert len(given(replace(BARE, routed=("enP7s7",)))[1]) > 1


def test_the_boot_loader_is_told_and_nobody_is_rebooted() -> None:
    host, commands = given(replace(BARE, kernel="7.0.0-1019-nvidia"))
    assert any(GRUB in command for command in commands)
    assert "update-grub" in commands
    assert not any("reboot" in command for command in commands)
    assert any("sudo reboot" in line for line in host.logged)
    # Cut between the file and the boot loader.
    ours = replace(settled(bare=replace(BARE, kernel="7.0.0-1019-nvidia")))
    assert ours.files[GRUB] == as_file(GRUB_TEXT)
    assert given(ours)[1] == ["update-grub"]
    assert given(replace(ours, boots_with=("kho=off",)))[1] == []


def test_the_cable_that_does_not_answer_fails_the_host_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_PAUSE_S", 0.0)
    dead = replace(settled(), pings=tuple(
        replace(ping, trouble="no answer in 3 tries") if ".101." in ping.source else ping for ping in settled().pings
    ))  # fmt: skip
    host = StubHost({FabricSurvey: dead})
    commands_of(host, fabric_settled, fabric=PAIR, member="spark-1")
    (refusal,) = commands_of(host, fabric_answers, fabric=PAIR, member="spark-1")
    assert "port f0 (enP2p1s0f0np0, half 2 of 2) to spark-2" in refusal.get_raw_value()
    assert "(enp1s0f0np0" not in refusal.get_raw_value()


def test_a_cable_that_comes_up_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "_PAUSE_S", 0.0)
    late = replace(settled(), pings=())
    host = StubHost({FabricSurvey: [late, late, settled()]})
    commands_of(host, fabric_settled, fabric=PAIR, member="spark-1")
    assert commands_of(host, fabric_answers, fabric=PAIR, member="spark-1") == []


def test_a_host_that_gives_no_answer_is_refused() -> None:
    _, (refusal,) = given(None)
    assert "could not be read" in refusal


def test_the_fact_reads_what_the_program_prints() -> None:
    said = {
        "kernel": "6.17.0-1029-nvidia",
        "arguments": "quiet splash",
        "has_netplan": True,
        "pending": False,
        "boots_with": [],
        "links": [
            {
                "ifname": "enp1s0f0np0",
                "flags": ["BROADCAST", "UP", "LOWER_UP"],
                "mtu": 9000,
                "address": "4c:bb:47:00:00:01",
                "addr_info": [
                    {"family": "inet", "local": "192.168.100.1", "prefixlen": 24, "scope": "global"},
                    {"family": "inet6", "local": "fe80::1", "prefixlen": 64, "scope": "link"},
                ],
            },
            {
                "ifname": "enp1s0f1np1",
                "flags": ["BROADCAST"],
                "mtu": 1500,
                "address": "4c:bb:47:00:00:02",
                "addr_info": [],
            },
            {
                "ifname": "enP7s7",
                "flags": ["UP"],
                "mtu": 1500,
                "addr_info": [{"family": "inet", "local": "10.0.0.11", "prefixlen": 24, "scope": "global"}],
            },
        ],
        "routes": [{"dst": "default", "gateway": "10.0.0.1", "dev": "enP7s7"}],
        "ports": [
            {
                "name": "enp1s0f0np0",
                "pci": "0000:01:00.0",
                "speed": "200000",
                "pcie_speed": "32.0 GT/s PCIe",
                "pcie_width": "4",
                "rdma": {
                    "name": "rocep1s0f0",
                    "firmware": "28.45.4028",
                    "board": "NVD0000000087",
                    "state": "4: ACTIVE",
                    "rate": "200 Gb/sec (2X NDR)",
                    "gids": [
                        [0, "fe80:0000:0000:0000:4ebb:47ff:fe00:0001", "IB/RoCE v1"],
                        [2, "0000:0000:0000:0000:0000:ffff:c0a8:6401", "IB/RoCE v1"],
                        [3, "0000:0000:0000:0000:0000:ffff:c0a8:6401", "RoCE v2"],
                    ],
                },
            },
            {
                "name": "enp1s0f1np1",
                "pci": "0000:01:00.1",
                "speed": "-1",
                "pcie_speed": "2.5 GT/s PCIe",
                "pcie_width": "4",
                "rdma": None,
            },
        ],
        "foreign": [{"file": NETPLAN, "ports": ["enp1s0f0np0"], "alone": True}],
        "text": "network:\n",
        "files": {NETPLAN: ["ab" * 32, "600", "root:root"], LIMITS: None},
        "pings": [{"from": "192.168.100.1", "to": "192.168.100.2", "bytes": 9000, "trouble": ""}],
    }
    state = FabricSurvey().process(["Welcome", json.dumps(said)])
    assert state == fabric_state(json.dumps(said))
    up, down = state.ports
    assert (up.place, up.carrier, up.addresses, up.speed_mbps, up.pcie_gts) == (
        "f0",
        True,
        ("192.168.100.1/24",),
        200_000,
        32.0,
    )
    assert (up.rdma, up.rdma_state, up.gids) == ("rocep1s0f0", "ACTIVE", {"192.168.100.1": 3})
    assert (down.place, down.carrier, down.speed_mbps, down.rdma, down.pcie_gts) == ("f1", None, None, None, 2.5)
    assert (state.management, state.others) == ("enP7s7", {"enP7s7": ("10.0.0.11/24",)})
    command = FabricSurvey().command(files=[LIMITS], pings=[("192.168.100.1", "192.168.100.2", 9000)]).get_raw_value()
    assert command.startswith("python3 -c ")
