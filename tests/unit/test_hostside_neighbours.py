"""Services that the fleet file has no more make way for those that it has."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from modules.hostside import neighbours
from modules.hostside.ledger import Ledger, point
from modules.hostside.neighbours import (
    drop_in,
    have_back,
    in_the_way,
    left_over,
    make_way,
    order_file,
    settle,
    wanted,
)


class Host:
    """A host in a folder, whose services `old` and `other` the fleet file does not have; `old` runs."""

    def __init__(self, folder: Path) -> None:
        self.state, self.settings, self.units = folder / "state", folder / "etc", folder / "units"
        self.commands: list[list[str]] = []
        self.states = {"old": ("active", "enabled"), "other": ("inactive", "disabled"), "new": ("inactive", "disabled")}
        for service in self.states:
            book = Ledger(service, self.state)
            book.record("r1", {}, [])
            point(book.directory / "current", "r1.json")
        self.want("new")

    def want(self, *services: str) -> None:
        self.settings.mkdir(exist_ok=True)
        (self.settings / "services.json").write_text(json.dumps({"services": services}))

    def settle(self) -> None:
        settle(self.state, self.settings, self.units)

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command[1:])
        service = command[-1].removeprefix("tinderbox-").removesuffix(".service")
        if service in self.states:
            active, enabled = self.states[service]
            verb = command[1]
            active = {"stop": "inactive", "start": "active"}.get(verb, active)
            self.states[service] = (active, {"disable": "disabled", "enable": "enabled"}.get(verb, enabled))
        return subprocess.CompletedProcess(command, 0, "", "")

    def unit_state(self, unit: str) -> dict[str, str]:
        active, enabled = self.states[unit.removeprefix("tinderbox-").removesuffix(".service")]
        return {"ActiveState": active, "UnitFileState": enabled}

    def events(self, service: str) -> list[tuple[str, str]]:
        entry = Ledger(service, self.state).entry("r1") or {}
        return [(event["event"], event.get("note", "")) for event in entry["events"]]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path)
    monkeypatch.setattr(subprocess, "run", host.run)
    monkeypatch.setattr(neighbours, "unit_state", host.unit_state)
    monkeypatch.setattr(neighbours, "SETTINGS", host.settings)
    monkeypatch.setattr("gpus_kept.run", lambda *_: None)
    return host


def test_what_the_fleet_file_has_no_more_is_excluded_and_does_not_come_back_with_a_boot(host: Host) -> None:
    host.settle()
    text = drop_in("new", host.units).read_text()
    assert "Conflicts=tinderbox-old.service tinderbox-other.service\n" in text
    # Its stop ends before the other's start.
    assert "After=tinderbox-old.service tinderbox-other.service\n" in text
    # It runs on, and may after a boot: nothing was started yet that it would be in the way of.
    assert host.states["old"] == ("active", "enabled")
    assert host.commands[-1] == ["daemon-reload"]

    host.commands.clear()
    host.settle()
    assert host.commands == []


def test_a_boot_brings_back_the_wanted_one_of_two(host: Host) -> None:
    host.states["new"] = ("active", "enabled")
    host.settle()
    assert host.states["old"] == ("active", "disabled")
    assert host.states["new"] == ("active", "enabled")


def test_services_of_the_fleet_file_do_not_exclude_each_other(host: Host) -> None:
    host.want("new", "old", "other")
    host.settle()
    assert not host.units.exists()
    assert host.commands == []


def test_one_that_is_wanted_again_is_excluded_no_more(host: Host) -> None:
    host.settle()
    host.want("new", "old", "other")
    host.settle()
    assert list(host.units.iterdir()) == []


def test_a_host_that_was_told_nothing_has_no_strangers(host: Host) -> None:
    (host.settings / "services.json").unlink()
    assert (wanted(host.settings), left_over(host.state, host.settings)) == (None, [])
    host.settle()
    assert not host.units.exists()


def test_it_makes_way_and_comes_back_where_that_was_in_vain(host: Host) -> None:
    book = Ledger("new", host.state)
    assert in_the_way(book) == ("old",)
    make_way(book, ("old",))
    assert host.states["old"] == ("inactive", "disabled")
    assert in_the_way(book) == ()
    assert have_back(book, ("old",)) == ["old"]
    assert host.states["old"] == ("active", "enabled")
    assert host.events("old") == [
        ("stopped", "it made way for service new: the fleet file has it no more"),
        ("restored", "service new did not get ready"),
    ]


def order(host: Host, *services: str, spans: tuple[str, ...] = ()) -> None:
    document = {"services": sorted(services), "order": services, "start_s": dict.fromkeys(services, 100)}
    document["spans"] = spans
    (host.settings / "services.json").write_text(json.dumps(document))


def test_those_of_the_fleet_file_start_one_after_the_other_whatever_becomes_of_the_first(host: Host) -> None:
    order(host, "other", "new", "old")
    host.settle()
    first, second, third = (order_file(name, host.units).read_text() for name in ("other", "new", "old"))
    assert "After=" not in first
    assert "After=tinderbox-other.service\n" in second
    assert "After=tinderbox-other.service tinderbox-new.service\n" in third
    for text in (first, second, third):
        assert "Requires=" not in text
        assert "Wants=" not in text
        # All three starts, and what the memory gate does besides; three attempts still count as one crash loop.
        assert "TimeoutStartSec=540\n" in text
        assert "StartLimitIntervalSec=2700\n" in text
    assert host.commands[-1] == ["daemon-reload"]
    host.commands.clear()
    host.settle()
    assert host.commands == []


def test_the_starts_of_one_that_spans_hosts_stay_bounded_by_its_own_program(host: Host) -> None:
    order(host, "new", "old", spans=("old",))
    host.settle()
    assert "StartLimit" in order_file("new", host.units).read_text()
    assert "StartLimit" not in order_file("old", host.units).read_text()


def test_one_that_is_alone_again_or_gone_from_the_fleet_file_is_ordered_no_more(host: Host) -> None:
    order(host, "other", "new", "old")
    host.settle()
    order(host, "new", "old")
    host.settle()
    assert not order_file("other", host.units).exists()
    assert "After=tinderbox-new.service\n" in order_file("old", host.units).read_text()
    host.want("new")
    host.settle()
    assert not order_file("new", host.units).exists()
    assert not order_file("old", host.units).exists()


def test_a_text_that_systemd_reads(host: Host) -> None:
    host.settle()
    lines = drop_in("new", host.units).read_text().splitlines()
    assert lines[0].startswith("# ")
    assert lines[1] == "[Unit]"
