"""`modules.logs` over real SSH to this machine: merged, followed, cut and taken up again, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from modules.asking.connections import Connections
from modules.fleet import load_fleet
from modules.logs import follow
from modules.logs.follow import Host, Logs
from modules.logs.line import Entry
from modules.logs.reader import Wish
from tests.operations.command_host import CommandHost, closed_place, command_host
from tests.operations.journal import Journal

PATIENCE_S = 20.0


@dataclass
class Place:
    """Two hosts, each with a journal."""

    hosts: dict[str, CommandHost]
    journals: dict[str, Journal]
    fleet: Path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        hosts, journals = {}, {}
        for name in ("spark-1", "spark-2"):
            folder = tmp_path / name
            folder.mkdir()
            journals[name] = Journal(folder)
            path = f"{journals[name].bin}:{Path(sys.executable).parent}:{os.environ['PATH']}"
            hosts[name] = stack.enter_context(command_host(folder, path))
        fleet = tmp_path / "fleet.yaml"
        _write(fleet, {name: (host, host.port) for name, host in hosts.items()})
        yield Place(hosts, journals, fleet)


def _write(path: Path, hosts: dict[str, tuple[CommandHost, int]]) -> None:
    rows = "".join(
        f"  {name}: {{address: 127.0.0.1, ssh: {{port: {port}, key: {host.key}, known_hosts: {host.known}}}}}\n"
        for name, (host, port) in hosts.items()
    )
    services = "{gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b}}"
    path.write_text(f"fleet: logged\nssh: {{user: spark}}\ndefaults: {{services: {services}}}\nhosts:\n{rows}")


@dataclass
class Reading:
    """`modules.logs` in this process, and what it has shown."""

    place: Place
    wish: Wish
    texts: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        fleet = load_fleet(self.place.fleet)
        self.connections = Connections(fleet, fleet.hosts.values(), 5.0)
        hosts = [Host(self.connections, name, name, ("gpt-oss",)) for name in fleet.hosts]
        self.logs = Logs(hosts, self.wish, self._show, self.told.append)

    def _show(self, entry: Entry) -> None:
        self.texts.append(f"{entry.source}: {entry.text}")

    def follows(self) -> bool:
        """Whether all hosts have told their past."""
        merger = getattr(self.logs, "_merger", None)
        return merger is not None and not any(one.past for one in merger._sources.values())

    def start(self) -> None:
        threading.Thread(target=self.logs.run, daemon=True).start()


def until(look: Callable[[], bool], told: str) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < give_up, told
        time.sleep(0.02)


def test_what_hosts_have_logged_is_shown_in_the_order_of_time(place: Place) -> None:
    for at in range(1, 7):
        place.journals["spark-1" if at % 2 else "spark-2"].log(f"at {at}", at)
    reading = Reading(place, Wish((), follow=False, lines=2))
    reading.logs.run()
    assert reading.texts == ["spark-1: at 3", "spark-2: at 4", "spark-1: at 5", "spark-2: at 6"]
    assert reading.told == []


def test_a_host_that_has_logged_nothing_says_so(place: Place) -> None:
    place.journals["spark-1"].log("here", 1)
    reading = Reading(place, Wish((), follow=False, lines=2))
    reading.logs.run()
    assert reading.told == ["spark-2: its journal has nothing of gpt-oss in that time"]
    assert not reading.logs.unread


def test_a_host_that_is_not_reached_is_named_and_the_others_go_on(place: Place) -> None:
    place.journals["spark-1"].log("here", 1)
    first = place.hosts["spark-1"]
    _write(place.fleet, {"spark-1": (first, first.port), "spark-2": (first, closed_place())})
    done = subprocess.run(
        [sys.executable, "-m", "modules.logs", str(place.fleet)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3
    (line,) = done.stdout.splitlines()
    assert line.endswith(" spark-1 gpt-oss  here")
    assert "\x1b" not in done.stdout
    assert done.stderr.startswith("spark-2: what it logs is unknown: Could not connect")


def test_a_connection_that_breaks_is_taken_up_again_without_loss_or_doubles(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modules.logs.reader._WAITS_S", (0.1,))
    first, second = place.journals["spark-1"], place.journals["spark-2"]
    first.log("before", 1)
    reading = Reading(place, Wish((), follow=True, lines=10))
    reading.start()
    until(lambda: "spark-1: before" in reading.texts, "nothing came")
    expected = ["before"]
    for cut in range(4):
        for number in range(25):
            text = f"cut {cut}, {number}"
            expected.append(text)
            first.log(text, 2 + cut + number / 100)
            if number == 11:
                # In the midst of it; what comes meanwhile is there when it is reached again.
                place.hosts["spark-1"].machine.drop()
            time.sleep(0.01)
        until(lambda: f"spark-1: {expected[-1]}" in reading.texts, f"it is not read again: {reading.told}")
    second.log("of the other", 9)
    until(lambda: "spark-2: of the other" in reading.texts, "the other is not read any more")

    assert [text.removeprefix("spark-1: ") for text in reading.texts if text.startswith("spark-1")] == expected
    assert any("spark-1: what it logs is unknown: the connection broke" in line for line in reading.told)
    assert any("spark-1: it is read again, from where it was left" in line for line in reading.told)
    assert not any(line.startswith("spark-2") for line in reading.told)
    reading.connections.close_all()


def test_what_was_logged_between_a_first_look_at_nothing_and_a_cut_is_not_lost(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modules.logs.reader._WAITS_S", (0.5,))
    reading = Reading(place, Wish((), follow=True, lines=1))
    reading.start()
    until(reading.follows, "nobody follows")
    place.hosts["spark-1"].machine.drop()
    for number in range(3):
        place.journals["spark-1"].log(f"unseen {number}", 1)
    until(lambda: len(reading.texts) == 3, f"{reading.texts} {reading.told}")
    assert reading.texts == [f"spark-1: unseen {number}" for number in range(3)]
    reading.connections.close_all()


def test_ctrl_c_ends_it_with_130_and_leaves_nothing_on_the_hosts(place: Place) -> None:
    place.journals["spark-1"].log("here", 1)
    with subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "-m", "modules.logs", "--follow", str(place.fleet)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline().endswith("here\n")
        until(lambda: all(journal.followers() for journal in place.journals.values()), "nobody follows")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
    for name, host in place.hosts.items():
        until(lambda host=host: not host.machine.running, f"{name}: what was begun there goes on")  # type: ignore[misc]
        assert not place.journals[name].followers()


def test_the_past_does_not_wait_for_a_host_that_never_comes_to_its_end(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_PAST_S", 0.5)
    place.journals["spark-1"].log("here", 1)
    stuck = place.journals["spark-2"].bin / "journalctl"
    stuck.write_text("#!/bin/sh\nexec sleep 600\n")
    reading = Reading(place, Wish((), follow=True, lines=10))
    reading.start()
    until(lambda: reading.texts == ["spark-1: here"], "the others wait for it")
    reading.connections.close_all()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--service", "none-such"], "no host has a service none-such; services are: gpt-oss"),
        (["--limit", "spark-9"], "no host or group matches spark-9"),
        (["--since", "once"], "--since 'once' is not understood"),
        (["--grep", "("], "--grep is no regular expression"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused_before_any_host_is_asked(
    place: Place, words: list[str], said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "modules.logs", str(place.fleet), *words], capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert said in done.stderr
    assert not any(host.machine.transports for host in place.hosts.values())
