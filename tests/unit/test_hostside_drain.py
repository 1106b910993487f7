"""A service is taken out of its gateways' turn before it is stopped, and no longer than it may take."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modules.hostside import connections

# As the programs import them on a host.
if TYPE_CHECKING:
    from modules.hostside import drain
    from modules.hostside.drain import Door, Engine
    from modules.hostside.drain_lease import StayDrained
    from modules.hostside.drain_mark import LEASE_S
else:
    import drain
    from drain import Door, Engine
    from drain_lease import StayDrained
    from drain_mark import LEASE_S

SERVICE, GATEWAY = "gpt-oss", "10.0.0.10"
TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0B00000A:1F40 0A00000A:D431 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0B00000A:1F40 0A00000A:D432 08 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
   3: 0B00000A:1F40 6300000A:D433 01 00000000:00000000 00:00000000 00000000     0        0 4 1 0 20 4 30 10 -1
   4: 0B00000A:0016 0A00000A:D434 01 00000000:00000000 00:00000000 00000000     0        0 5 1 0 20 4 30 10 -1
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 0000000000000000FFFF00000B00000A:1F40 0000000000000000FFFF00000A00000A:D435 01 00000000:00000000
   1: 000080FE00000000000000000C000000:1F40 000080FE00000000000000000D000000:D436 01 00000000:00000000
"""


class Host:
    """A host in a folder, whose clock goes on with each pause. `busy`: requests, look by look, the last for ever."""

    def __init__(self, folder: Path, busy: list[int], *, told_after: float | None = 2.0, serves: bool = True) -> None:
        self.folder, self.busy, self.told_after, self.serves = folder, busy, told_after, serves
        self.now, self.looks, self.said = 100.0, 0, list[str]()
        settings = {"services": {SERVICE: {"url": "http://127.0.0.1:8000", "port": 8000}}, "gateways": [GATEWAY]}
        (folder / "agent.json").write_text(json.dumps({**settings, "drain_s": 60}))

    def door(self, service: str = SERVICE) -> Door:
        return Door(
            service, self.folder / "agent.json", self.folder / "marks", self.folder, self._engine,
            lambda _: self.serves, self._sleep, lambda: self.now,
        )  # fmt: skip

    def _engine(self, _: dict[str, Any], gateways: Iterable[str]) -> Engine:
        assert set(gateways) == {GATEWAY}
        return Engine(self._requests, lambda: 0)

    def _requests(self) -> int:
        self.looks += 1
        return self.busy.pop(0) if len(self.busy) > 1 else self.busy[0]

    def _sleep(self, seconds: float) -> None:
        assert self.door().is_closed
        self.now += seconds
        if self.told_after is not None and self.now >= 100 + self.told_after:
            drain.told_file(SERVICE, self.folder).write_text(json.dumps({GATEWAY: self.now}))


def test_it_waits_until_the_gateway_knows_and_then_until_nothing_runs(tmp_path: Path) -> None:
    host = Host(tmp_path, [3, 1, 0, 1, 0, 0])
    assert host.door().hold(host.said.append) == 0
    assert (host.busy, host.looks) == ([0], 6)
    assert host.now >= 102
    assert host.said[0] == "draining: waiting until the gateways send it nothing more"
    assert "draining: 3 requests still run" in host.said
    assert host.door().is_closed
    host.door().open()
    assert not host.door().is_closed


def test_what_does_not_end_is_waited_for_no_longer_than_it_may(tmp_path: Path) -> None:
    host = Host(tmp_path, [2])
    assert host.door().hold(host.said.append) == 2
    assert 160 < host.now < 170
    assert host.said[-1] == "draining: 2 requests still run after 60 s, and are ended"


def test_a_gateway_that_is_down_holds_nobody_up(tmp_path: Path) -> None:
    host = Host(tmp_path, [0], told_after=None)
    assert host.door().hold(host.said.append) == 0
    assert host.now < 115


def test_what_was_told_before_the_mark_does_not_count(tmp_path: Path) -> None:
    host = Host(tmp_path, [0], told_after=5)
    drain.told_file(SERVICE, tmp_path).write_text(json.dumps({GATEWAY: 99.0}))
    host.door().hold(host.said.append)
    assert host.now >= 105


def test_a_server_that_is_down_is_marked_and_not_waited_for(tmp_path: Path) -> None:
    host = Host(tmp_path, [1], serves=False)
    host.door().hold(host.said.append)
    assert (host.now, host.looks, host.door().is_closed) == (100.0, 0, True)


def test_without_a_gateway_nothing_is_marked(tmp_path: Path) -> None:
    host = Host(tmp_path, [1])
    for door in (host.door("another"), Door(SERVICE, tmp_path / "none.json", tmp_path / "marks")):
        assert door.hold(host.said.append) == 0
        door.close()
        assert not door.is_closed
    assert host.said == []


def test_the_mark_of_a_measurement_ends_with_whoever_measures(tmp_path: Path) -> None:
    host = Host(tmp_path, [0])
    host.door().hold(host.said.append, measure=True)
    for _ in range(20):
        host.now += LEASE_S - 1
        assert host.door().is_closed
        host.door().mark.stay()
    # Killed: nobody says any more that it is measured, nor opens it.
    host.now += LEASE_S + 1
    assert not host.door().is_closed
    # The next run's measurement begins as the first did.
    host.door().hold(host.said.append, measure=True)
    assert host.door().is_closed
    host.door().open()
    assert not host.door().is_closed
    host.door().mark.stay()
    assert not host.door().is_closed


def test_a_measurement_waits_for_what_runs_as_long_as_it_may(tmp_path: Path) -> None:
    host = Host(tmp_path, [1] * 2000 + [0])
    (tmp_path / "agent.json").write_text(
        (tmp_path / "agent.json").read_text().replace('"drain_s": 60', '"drain_s": 3600')
    )
    # Each pause looks whether it is closed still.
    assert host.door().hold(host.said.append, measure=True) == 0
    assert host.now > 100 + LEASE_S + 100


def test_a_mark_without_an_end_is_not_given_one_by_a_measurement(tmp_path: Path) -> None:
    host = Host(tmp_path, [0])
    host.door().hold(host.said.append)
    host.door().hold(host.said.append, measure=True)
    host.door().mark.stay()
    host.now += 100 * LEASE_S
    assert host.door().is_closed


def test_a_server_that_is_stopped_while_it_is_measured_stays_drained(tmp_path: Path) -> None:
    host = Host(tmp_path, [0])
    host.door().hold(host.said.append, measure=True)
    host.door().hold(host.said.append)
    host.door().mark.stay()
    host.now += 100 * LEASE_S
    assert host.door().is_closed
    assert host.door().mark.since == 100.0  # what the gateways were told since then holds


def test_who_measures_says_so_again_and_again(tmp_path: Path) -> None:
    mark = Host(tmp_path, [0]).door().mark
    mark.put(measure=True)
    lease = tmp_path / "drain-measured" / SERVICE
    lease.unlink()
    with StayDrained(mark, again_s=0.01):
        deadline = time.monotonic() + 20
        while not lease.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert lease.exists()
    assert mark.counts


@pytest.mark.parametrize(("requests", "open_", "busy"), [(None, 2, 2), (None, 0, 0), (0, 1, 1), (3, 1, 3)])
def test_an_engine_without_counters_is_judged_by_its_connections(requests: int | None, open_: int, busy: int) -> None:
    assert Engine(lambda: requests, lambda: open_).busy() == busy


def test_connections_are_counted_of_gateways_alone(tmp_path: Path) -> None:
    lists = [tmp_path / "tcp", tmp_path / "tcp6", tmp_path / "none"]
    lists[0].write_text(TCP)
    lists[1].write_text(TCP6)
    assert connections.established(8000, {GATEWAY}, lists) == 2
    assert connections.established(8000, {GATEWAY, "fe80::d00:0"}, lists[:1]) == 1
    assert list(connections.remotes(TCP6, 8000))[1].startswith("fe80::")
    assert connections.established(9000, {GATEWAY}, lists) == 0
