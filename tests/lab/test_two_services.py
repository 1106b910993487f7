"""Two services on one Spark: the real vLLM twice, two tiny models. What befalls one does not touch the other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from modules.lab.model.repository import COMMIT, REPOSITORY, hub
from tests.lab.behind_gateway import KEYS, changed, write_keys
from tests.lab.fake_release import by_hand, deployed
from tests.lab.hub_models import HubModel, hub_model
from tests.lab.lab_driver import Lab
from tests.lab.side_by_side import Neighbour, asked, now, one_after_the_other

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-1"
# The second stands first in the file, and has the lower priority.
MAIN, SMALL = "main", "small"
# A piece of a real engine's stream can hold several tokens; a whole reply counts them.
WHOLE = {"streams": 0, "plain": 1}
_PORTS = {MAIN: 8001, SMALL: 8002}


@dataclass(frozen=True)
class Pair:
    """A host with two services that are ready."""

    lab: Lab
    second: HubModel
    commit: str

    def fleet(self, name: str, **flags: Any) -> Path:
        """A fleet file. `flags`: of the second service."""
        usual = {
            "engine": "vllm-cpu", "profile": "balanced", "listen": "0.0.0.0", "api_key": "engine-key", "gate": None,
            "model": "lab-gpt-oss-tiny",
        }  # fmt: skip
        model = self.second.written_out(
            served_as="tiny-two", size_gib=0.11, revision=self.commit,
            encodings=["o200k_base.tiktoken", "cl100k_base.tiktoken"],
        )  # fmt: skip
        small = {**usual, "port": _PORTS[SMALL], "model": model, "flags": flags, "aliases": ["everyday"]}
        services = {SMALL: small, MAIN: {**usual, "port": _PORTS[MAIN], "priority": 10}}
        secrets = write_keys(self.lab)

        def change(content: dict[str, Any]) -> None:
            content |= {"fleet": "two", "secrets": secrets}
            content["hosts"] = {HOST: content["hosts"][HOST]}
            content["defaults"]["services"] = services

        return self.lab.write_fleet(f"two-{name}", change)

    def __getitem__(self, name: str) -> Neighbour:
        return Neighbour(self.lab, HOST, name)

    def url(self, name: str) -> str:
        return f"http://{self.lab.address(HOST)}:{_PORTS[name]}"

    @property
    def main(self) -> dict[str, tuple[str, str]]:
        """The one that is to be left alone, as clients ask it."""
        return {MAIN: (self.url(MAIN), "gpt-oss-tiny")}

    @property
    def small(self) -> dict[str, tuple[str, str]]:
        """The other one, by its alias."""
        return {SMALL: (self.url(SMALL), "everyday")}


@pytest.fixture(scope="module")
def pair(lab: Lab) -> Iterator[Pair]:
    """Both services, ready."""
    there = hub().path / REPOSITORY / COMMIT
    files = {str(path.relative_to(there)): path.read_bytes() for path in there.rglob("*") if path.is_file()}
    with hub_model(lab, "tiny-two") as second:
        commit = second.publish({**files, "README.md": b"The second model of a test.\n"})
        pair = Pair(lab, second, commit)
        run = deployed(lab, pair.fleet("first"))
        assert run.rc == 0, run.text
        yield pair


@pytest.fixture(autouse=True)
def _starts_are_counted_anew(pair: Pair) -> None:
    """Each of these tests costs starts, and more than three within the bound of a crash loop are refused."""
    pair.lab.ssh(HOST, f"sudo systemctl reset-failed {pair[MAIN].unit} {pair[SMALL].unit}", check=False)


def test_both_serve_by_all_their_names_and_a_second_run_changes_nothing(pair: Pair) -> None:
    began = {name: pair[name].invocation() for name in (MAIN, SMALL)}
    with asked({**pair.main, **pair.small}, KEYS["engine-key"], **WHOLE) as accounts:
        run = deployed(pair.lab, pair.fleet("first"))
    assert run.rc == 0, run.text
    assert changed(run) == 0, run.text
    assert {name: pair[name].invocation() for name in (MAIN, SMALL)} == began
    for account in accounts.values():
        assert account.lost == [], account.text()
        assert account.completed > 0
    order = json.loads(pair.lab.read(HOST, "/etc/tinderbox/services.json"))["order"]
    assert order == [MAIN, SMALL]


def test_a_release_and_a_rollback_of_one_leave_the_other_running(pair: Pair) -> None:
    began, small = pair[MAIN].invocation(), pair[SMALL].invocation()
    with asked(pair.main, KEYS["engine-key"], **WHOLE) as accounts:
        run = deployed(pair.lab, pair.fleet("second", **{"max-num-seqs": 4}))
        assert run.rc == 0, run.text
        assert pair[SMALL].invocation() != small
        upgraded, small = accounts[MAIN].completed, pair[SMALL].invocation()
        back = by_hand(pair.lab, "rollback", pair.fleet("second", **{"max-num-seqs": 4}), TINDERBOX_SERVICE=SMALL)
        assert back.rc == 0, back.text
        assert pair[SMALL].invocation() != small
    account = accounts[MAIN]
    assert account.lost == [], account.text()
    assert 0 < upgraded < account.completed
    assert pair[MAIN].invocation() == began
    # The fleet file of before says what serves now.
    run = deployed(pair.lab, pair.fleet("first"))
    assert (run.rc, changed(run)) == (0, 0), run.text


def test_a_crash_of_one_leaves_the_other_running(pair: Pair) -> None:
    began, small = pair[MAIN].invocation(), pair[SMALL].invocation()
    with asked(pair.main, KEYS["engine-key"], **WHOLE) as accounts:
        pair[SMALL].kill()
        pair[SMALL].await_another(small)
    account = accounts[MAIN]
    assert account.lost == [], account.text()
    assert account.completed > 0
    assert pair[MAIN].invocation() == began


def test_two_that_start_at_once_load_one_after_the_other(pair: Pair) -> None:
    """After a crash of both, which no order of systemd's holds apart: each starts when its own pause is over."""
    since, before = now(pair.lab, HOST), {name: pair[name].invocation() for name in (MAIN, SMALL)}
    pair.lab.ssh(HOST, "sudo docker kill tinderbox-main tinderbox-small")
    for name in (MAIN, SMALL):
        pair[name].await_another(before[name])
    loads = {name: pair[name].loads(since) for name in (MAIN, SMALL)}
    assert [len(spans) for spans in loads.values()] == [1, 1], loads
    assert one_after_the_other(*loads.values()), loads


def test_a_boot_starts_them_in_order(pair: Pair) -> None:
    since = now(pair.lab, HOST)
    pair.lab.restart(HOST)
    for name in (MAIN, SMALL):
        pair[name].await_ready()
    loads = {name: pair[name].loads(since)[-1:] for name in (MAIN, SMALL)}
    assert loads[MAIN][0][1] <= loads[SMALL][0][0], loads
    with asked({**pair.main, **pair.small}, KEYS["engine-key"], **WHOLE) as accounts:
        time.sleep(10)
    for account in accounts.values():
        assert account.lost == [], account.text()
        assert account.completed > 0
