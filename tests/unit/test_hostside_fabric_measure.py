"""The measurement of links on a host: what is run, what is kept, what a failure leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modules.facts.fabric_measured import FabricMeasured
from modules.hostside.fabric_measure import LARGEST, measure, nccl, nccl_command, serve

LINK = {"name": "one", "device": "rocep1s0f0", "gid": 3, "port": 18515, "address": "192.168.100.1"}
WISH: dict[str, Any] = {
    "key": "k1", "links": [LINK, {**LINK, "name": "two", "device": "roceP2p1s0f0", "port": 18516}], "bytes": 64 << 20,
    "addresses": ["192.168.100.1", "192.168.100.2"], "environment": {"NCCL_NET": "IB"},
}  # fmt: skip


class Shell:
    def __init__(self, *answers: tuple[int, str]) -> None:
        self.answers, self.said = list(answers), list[str]()

    def ask(self, command: list[str], timeout_s: float) -> tuple[int, str]:
        assert timeout_s > 0
        self.said.append(" ".join(command))
        return self.answers.pop(0) if self.answers else (0, "fine")


def test_each_link_waits_in_a_unit_that_ends_by_itself() -> None:
    shell = Shell()
    serve(WISH, shell.ask)
    started = [line for line in shell.said if line.startswith("systemd-run")]
    assert len(started) == 2
    assert "--unit=tinderbox-fabric-bw-18515 --property=RuntimeMaxSec=180" in started[0]
    assert started[0].endswith("ib_write_bw -d rocep1s0f0 -x 3 -p 18515 --report_gbits -F")


def test_an_end_that_can_not_wait_is_an_error() -> None:
    with pytest.raises(SystemExit, match="one: its waiting end could not be started: no such unit"):
        serve(WISH, Shell((0, ""), (1, "no such unit\n")).ask)


def test_a_client_asks_again_while_the_other_end_is_not_up_and_keeps_what_was_printed(tmp_path: Path) -> None:
    path = tmp_path / "fabric" / "measured.json"
    shell = Shell((1, "Couldn't connect to 192.168.100.1:18515\n"), (0, "table one"), (1, "Couldn't allocate MR\n"))
    measure(WISH, path, shell.ask, lambda _: None)
    assert [line.split()[2] for line in shell.said] == ["rocep1s0f0", "rocep1s0f0", "roceP2p1s0f0"]
    assert shell.said[0].endswith(" 192.168.100.1")
    kept = json.loads(path.read_text())
    assert kept["rdma"]["one"] == {"rc": 0, "output": "table one"}
    found = FabricMeasured().process(["ib_write_bw ", *path.read_text().splitlines()])
    assert found is not None
    assert (found.has("k1", "one"), found.has("k1", "two"), found.has("k2", "one")) == (True, False, False)
    assert found.programs == {"ib_write_bw"}


def test_what_is_measured_later_is_added_and_another_key_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    measure({**WISH, "links": WISH["links"][:1]}, path, Shell().ask, lambda _: None)
    measure({**WISH, "links": WISH["links"][1:]}, path, Shell().ask, lambda _: None)
    nccl(WISH, path, Shell((0, "busbw")).ask)
    kept = json.loads(path.read_text())
    assert (set(kept["rdma"]), kept["nccl"]["output"]) == ({"one", "two"}, "busbw")
    nccl({**WISH, "key": "k2"}, path, Shell().ask)
    assert "rdma" not in json.loads(path.read_text())


def test_nccl_gets_small_buffers_whatever_is_asked_for() -> None:
    words = nccl_command(WISH)
    assert words[words.index("-e") + 1] == str(64 << 20)
    assert "NCCL_NET=IB" in words
    assert "NCCL_DEBUG=INFO" in words
    huge = nccl_command({**WISH, "bytes": 16 << 30})
    assert huge[huge.index("-e") + 1] == str(LARGEST)
    small = nccl_command({**WISH, "bytes": 4096})
    assert (small[small.index("-b") + 1], small[small.index("-e") + 1]) == ("4096", "4096")


def test_a_host_that_measured_nothing_yet_says_so() -> None:
    found = FabricMeasured().process([""])
    assert found is not None
    assert (found.key, found.rdma, found.has("k1", "one")) == (None, {}, False)
