"""To which release a rollback goes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from modules.facts.releases import HostReleases, ReleaseSeen, ServiceReleases
from modules.release.rollback import Way, way_back


def seen(standing: str, since: str | None, *, good: bool = True, put_back: bool = False) -> ReleaseSeen:
    return ReleaseSeen(standing, good, put_back, since, "gate failed: slow" if standing == "bad" else None)


OLD, MID, NEW = seen("good", "2026-11-28"), seen("good", "2026-11-29"), seen("good", "2026-11-30")
SLOW, STAGED = seen("bad", "2026-11-29", good=False), seen("new", None, good=False)
HOST = ServiceReleases(
    active="active", enabled=True, current="new", last_good="new", pending=None,
    releases={"old": OLD, "mid": MID, "new": NEW, "slow": SLOW, "staged": STAGED},
)  # fmt: skip


def test_from_a_good_release_it_goes_to_the_good_one_before_it() -> None:
    assert way_back(HOST, None) == Way(target="mid")


def test_from_one_that_is_not_good_it_goes_to_the_last_good_one() -> None:
    assert way_back(replace(HOST, current="staged", last_good="old"), None) == Way(target="old")


def test_a_second_rollback_goes_no_further() -> None:
    back = replace(HOST, current="mid", last_good="mid", releases={**HOST.releases, "mid": replace(MID, put_back=True)})
    found = way_back(back, None)
    assert found.target is None
    assert found.done is not None
    assert "release mid serves, put back at 2026-11-29" in found.done
    assert way_back(replace(back, active="failed"), None).done is None
    assert way_back(back, "old") == Way(target="old")


def test_a_release_that_an_operator_was_rid_of_is_not_gone_back_to() -> None:
    withdrawn = {**HOST.releases, "mid": replace(MID, standing="bad")}
    assert way_back(replace(HOST, releases=withdrawn), None) == Way(target="old")


def test_a_named_one_may_be_any_that_is_not_bad() -> None:
    assert way_back(HOST, "old") == Way(target="old")
    assert way_back(HOST, "new") == Way(done="release new serves")
    assert way_back(replace(HOST, active="failed"), "new") == Way(target="new")
    refused = way_back(HOST, "slow").refused
    assert refused == "release slow is bad (gate failed: slow); set TINDERBOX_FORCE=1 to have it all the same"
    assert way_back(HOST, "slow", forced=True) == Way(target="slow")


@pytest.mark.parametrize(("named", "told"), [("r9", "the ledger has no release r9"), (None, "no good release but new")])
def test_what_there_is_not_is_refused_with_what_there_is(named: str | None, told: str) -> None:
    found = way_back(replace(HOST, releases={"new": NEW}), named).refused
    assert found is not None
    assert told in found
    assert "it has: new (good, 2026-11-30)" in found


def test_the_fact_reads_what_the_program_prints() -> None:
    one = {"standing": "good", "good": True, "put_back": False, "since": "then", "failure": None}
    service = {
        "active": "active", "enabled": True, "current": "r1", "last_good": "r1", "pending": None,
        "releases": {"r1": one},
    }  # fmt: skip
    found = HostReleases().process([json.dumps({"gpt-oss": service})])
    assert found is not None
    assert found["gpt-oss"].releases["r1"].good
    assert HostReleases().command().get_raw_value().startswith("! test -e /usr/local/lib/tinderbox/release_list.py ||")
