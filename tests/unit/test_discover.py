"""Finding Sparks, as far as it needs no network: what is announced, who is one machine, the file that is written."""

from __future__ import annotations

import json
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from modules.bootstrap.host_keys import HostKey
from modules.discover import __main__ as command
from modules.discover.announced import announced, further_types, of_reverse, reverse, service_of
from modules.discover.dns import PTR, SRV, Record, question, records
from modules.discover.links import Link, Neighbour, links, neighbours
from modules.discover.machine import QUESTIONS, Told, told
from modules.discover.merge import Machine, Seen, merged
from modules.discover.render import fleet_file, fleet_name, rows, wanted
from modules.fleet import load_fleet

SAMPLES = Path(__file__).parents[1] / "samples"
RECORDED = [bytes.fromhex(line) for line in (SAMPLES / "mdns" / "avahi-0.8.txt").read_text().split()]
ONE, TWO = (HostKey("ssh-ed25519", f"AAAA{letter * 60}") for letter in "BC")
SPARK = Told("spark-ab12", "id-1", "NVIDIA DGX Spark", "7.5.0", "580.95.05", "NVIDIA GB10")
LAPTOP = Told("desk", "id-9", "ThinkPad", "", "", "")


def test_what_avahi_really_sends_is_understood() -> None:
    found = [("10.77.0.2", one) for message in RECORDED for one in records(message)]
    machines = announced(found)
    assert list(machines) == ["spark-ab12.local"]
    spark = machines["spark-ab12.local"]
    assert spark.services == {"_ssh._tcp", "_workstation._tcp"}
    assert spark.port == 22
    assert spark.addresses == {"10.77.0.2"}


@pytest.mark.parametrize("name", ["spark\n  evil: {address: x}.local", "spark\x1b[2J.local", "spark'.local", ".local"])
def test_what_can_not_be_a_hosts_name_is_no_machine(name: str) -> None:
    """It would end up in a fleet file, and anybody on the link may send it."""
    found = [
        Record(name, 1, "10.0.0.7"),
        Record("7.0.0.10.in-addr.arpa", PTR, name),
        Record("x._ssh._tcp.local", SRV, name, 22),
        Record("a.b.c.d.in-addr.arpa", PTR, "spark-1.local"),
    ]
    assert announced([("10.0.0.7", one) for one in found]) == {}


def test_what_a_machine_says_can_not_break_the_table_or_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    said = told("tinderbox-says machine id-3\ntinderbox-says product DGX Spark[/x]\x1b[2J\x07\n")
    assert said is not None
    assert said.model == "DGX Spark[/x][2J"
    machine = merged([Seen("10.0.0.7", key=ONE, told=said)])
    command._show("Sparks", machine)
    assert "DGX Spark[/x]" in capsys.readouterr().err
    record = Record("spark-1._device-info._tcp.local", 16, "model=DGX\x1b[2J")
    near = announced([("10.0.0.7", one) for one in (Record("spark-1.local", 1, "10.0.0.7"), record)])
    assert near["spark-1.local"].model == "DGX[2J"


def test_a_link_local_address_has_the_zone_at_which_it_was_heard() -> None:
    record = Record("spark-2.local", 28, "fe80::42:acff:fe14:b")
    assert announced([("fe80::1%eth1", record)])["spark-2.local"].addresses == {"fe80::42:acff:fe14:b%eth1"}
    assert announced([("10.0.0.7", record)]) == {}


def test_only_what_looks_like_nvidias_own_is_asked_for_further() -> None:
    name = "_services._dns-sd._udp.local"
    found = [Record(name, PTR, f"{kind}.local") for kind in ("_ssh._tcp", "_ipp._tcp", "_nvidia-sync._tcp")]
    assert further_types(found) == ["_nvidia-sync._tcp"]


def test_a_port_and_a_model_are_those_that_are_announced() -> None:
    found = [
        Record("Anna's Spark.1._ssh._tcp.local", SRV, "Spark-1.local", 2222),
        Record("spark-1.local", 1, "10.0.0.11"),
        Record("spark-1._device-info._tcp.local", 16, "model=DGX Spark\nother"),
    ]
    (machine,) = announced([("10.0.0.11", one) for one in found]).values()
    assert (machine.name, machine.port, machine.model) == ("spark-1.local", 2222, "DGX Spark")
    assert machine.services == {"_ssh._tcp"}
    assert service_of("a.b._ssh._tcp.local") == "_ssh._tcp"


def test_names_of_addresses_and_back() -> None:
    assert reverse("10.0.0.11") == "11.0.0.10.in-addr.arpa"
    assert of_reverse("11.0.0.10.in-addr.arpa") == "10.0.0.11"
    assert of_reverse(reverse("fe80::1%eth0")) is None
    answer = Record(reverse("10.0.0.11"), PTR, "spark-1.local")
    assert announced([("10.0.0.11", answer)])["spark-1.local"].addresses == {"10.0.0.11"}


def test_a_question_is_as_rfc_6762_has_it() -> None:
    asked = question([("_ssh._tcp.local", PTR)], unicast=True)
    assert asked[:12] == struct.pack("!6H", 0, 0, 1, 0, 0, 0)
    assert asked[12:] == b"\x04_ssh\x04_tcp\x05local\x00" + struct.pack("!HH", PTR, 0x8001)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        question([("_ssh._tcp.local", PTR)], unicast=False),
        struct.pack("!6H", 0, 0x8400, 0, 1, 0, 0) + b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04\x0a\x00\x00\x01",
        struct.pack("!6H", 0, 0x8400, 0, 1, 0, 0) + b"\x03abc",
        bytes(range(256)),
    ],
    ids=["empty", "a question", "a name that leads to itself", "cut in a name", "noise"],
)
def test_of_what_is_no_answer_nothing_is_read(message: bytes) -> None:
    assert records(message) == []


@pytest.mark.parametrize("cut", range(12, len(RECORDED[0]), 7))
def test_of_an_answer_that_is_cut_off_only_whole_records_are_read(cut: int) -> None:
    whole = records(RECORDED[0])
    assert records(RECORDED[0][:cut]) == whole[: len(records(RECORDED[0][:cut]))]


def test_interfaces_of_containers_and_vpns_are_left_out_unless_they_are_named() -> None:
    text = (SAMPLES / "mdns" / "ip-addr.json").read_text()
    assert [link.name for link in links(text)] == ["eth0"]
    (bridge,) = links(text, ["br-e7d15314b432"])
    assert bridge.ipv4 == ("172.21.0.1",)
    assert [address.partition("%")[2] for address in bridge.ipv6] == [bridge.name]
    assert links("") == []


def test_neighbours_that_did_not_answer_are_none() -> None:
    text = json.dumps([
        {"dst": "10.0.0.11", "dev": "eth0", "lladdr": "48:b0:2d:00:00:01", "state": ["STALE"]},
        {"dst": "10.0.0.12", "dev": "eth0", "state": ["FAILED"]},
        {"dst": "fe80::1", "dev": "eth0", "lladdr": "48:b0:2d:00:00:01", "state": ["REACHABLE"], "router": None},
        {"dst": "10.0.0.13", "dev": "wlan0", "lladdr": "48:b0:2d:00:00:02", "state": ["STALE"]},
    ])  # fmt: skip
    card = "48:b0:2d:00:00:01"
    assert neighbours(text, [Link("eth0", 2, ("10.0.0.2",), ())]) == [
        Neighbour("10.0.0.11", "eth0", card),
        Neighbour("fe80::1%eth0", "eth0", card),
    ]


def test_a_machine_tells_what_it_is() -> None:
    said = subprocess.run(["sh", "-c", QUESTIONS], capture_output=True, text=True, check=True).stdout
    found = told(f"Welcome!\n{said}")
    assert found is not None
    assert found.name
    assert told("Welcome!\n") is None


def test_a_machine_under_several_names_and_addresses_is_one() -> None:
    seen = [
        Seen("fe80::1%eth0", key=ONE),
        Seen("10.0.0.12", names=("spark-ab12.local",), key=ONE, told=SPARK),
        # By another key: a second sshd, or one that was given a new key while this went on.
        Seen("192.168.100.1", key=TWO, told=SPARK),
        Seen("10.0.0.20", names=("printer.local",)),
    ]
    (machine,) = merged(seen)
    assert machine.addresses == ("10.0.0.12", "192.168.100.1", "fe80::1%eth0")
    assert (machine.name, machine.is_spark, machine.names) == ("spark-ab12", True, ("spark-ab12.local",))


def test_copied_disks_are_two_machines_where_they_tell_so() -> None:
    other = replace(SPARK, machine="id-2")
    apart = merged([Seen("10.0.0.11", key=ONE, told=SPARK), Seen("10.0.0.12", key=ONE, told=other)])
    assert [one.name for one in apart] == ["spark-ab12", "spark-ab12-1"]
    assert len(merged([Seen("10.0.0.11", key=ONE), Seen("10.0.0.12", key=ONE)])) == 1


def test_who_says_nothing_is_taken_by_name_or_card_and_who_says_it_is_another_is_not() -> None:
    seen = [
        Seen("10.0.0.11", names=("gx10-d56e.local",), key=ONE),
        Seen("10.0.0.12", mac="48:B0:2D:00:00:01", key=TWO),
        Seen("10.0.0.13", names=("sparkling.local",), key=HostKey("ssh-ed25519", "AAAADDDD")),
        Seen("10.0.0.14", names=("spark-9.local",), key=HostKey("ssh-ed25519", "AAAAEEEE"), told=LAPTOP),
    ]
    chosen, others = wanted(merged(seen))
    assert sorted(one.addresses[0] for one in chosen) == ["10.0.0.11", "10.0.0.12"]
    assert sorted(one.addresses[0] for one in others) == ["10.0.0.13", "10.0.0.14"]
    assert {row[3] for row in rows(chosen)} == {"unknown"}


def machines() -> list[Machine]:
    return merged([
        Seen("10.0.0.11", names=("spark-ab12.local",), key=ONE, told=SPARK),
        Seen("fe80::5%eth0", key=ONE),
        Seen("10.0.0.12", 2222, names=("gx10-d56e.local",), key=TWO),
    ])  # fmt: skip


@pytest.mark.parametrize("stem", ["mine", "my sparks", "7", "Büro_2"])
def test_the_file_that_is_written_is_taken_by_our_own_check(tmp_path: Path, stem: str) -> None:
    path = tmp_path / f"{stem}.yaml"
    name = fleet_name(stem)
    path.write_text(fleet_file(machines(), name=name, user="anna", path=str(path), day="2026-11-30", others=2))
    fleet = load_fleet(path)
    assert {name: (host.address, host.ssh.port) for name, host in fleet.hosts.items()} == {
        "spark-ab12": ("10.0.0.11", 22),
        "gx10-d56e": ("10.0.0.12", 2222),
    }
    assert {host.ssh.user for host in fleet.hosts.values()} == {"anna"}
    text = path.read_text()
    assert "# NVIDIA DGX Spark, DGX OS 7.5.0, driver 580.95.05" in text
    assert "# also: spark-ab12.local, fe80::5%eth0" in text
    assert "# model, DGX OS, driver: unknown" in text
    assert f"make bootstrap FLEET={path}" in text
    # The host key is told, and not trusted by that.
    assert ONE.fingerprint in text
    assert {host.ssh.host_key for host in fleet.hosts.values()} == {None}


def test_a_file_that_is_there_is_left_and_what_is_missing_in_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_found", lambda *_: machines())
    path = tmp_path / "mine.yaml"
    path.write_text("fleet: mine\nhosts: {spark-ab12: {address: spark-ab12.local}}\n")
    before = path.read_bytes()
    import typer

    app = typer.Typer()
    app.command()(command.main)
    done = CliRunner().invoke(app, ["--out", str(path)])
    assert done.exit_code == 1
    assert path.read_bytes() == before
    assert "is left as it is; what was found and is not in it" in done.output
    assert "gx10-d56e: {address: '10.0.0.12'}" in done.output
    fresh = tmp_path / "fresh.yaml"
    done = CliRunner().invoke(app, ["--out", str(fresh)])
    assert done.exit_code == 0
    assert len(load_fleet(fresh).hosts) == 2
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []
