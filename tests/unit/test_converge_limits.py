"""A limit that leaves no host is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.converge.limits import limit_problem, names_of, unmatched
from modules.fleet import Fleet, load_fleet

FLEET = """\
fleet: office
groups: {desk: {}}
hosts: {spark-1: {groups: [desk]}, spark-2: {}}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return load_fleet(path)


def test_limits_match_groups_and_patterns_of_host_names() -> None:
    hosts, groups = ["spark-1", "spark-2"], ["desk"]
    assert unmatched(["spark-*", "desk", "spark-2"], hosts, groups) == []
    assert unmatched(["spark-9", "rack", "Spark-1"], hosts, groups) == ["spark-9", "rack", "Spark-1"]


def test_one_option_may_hold_several_names() -> None:
    assert names_of(["spark-1,desk", "spark-2", ","]) == ["spark-1", "desk", "spark-2"]


@pytest.mark.parametrize("given", [[], ["spark-1"], ["desk,spark-2"], ["all"], ["inventory"], ["spark-*"]])
def test_a_limit_that_leaves_hosts_is_taken(given: list[str], fleet: Fleet) -> None:
    assert limit_problem(given, fleet) is None


@pytest.mark.parametrize(
    ("given", "told"),
    [(["spark-9"], "matches spark-9;"), (["spark-1,rack"], "matches rack;"), ([""], "matches an empty --limit;")],
)
def test_a_refused_limit_names_what_there_is(given: list[str], told: str, fleet: Fleet) -> None:
    problem = limit_problem(given, fleet)
    assert problem is not None
    assert told in problem
    assert problem.endswith("hosts are: spark-1, spark-2; groups are: desk")
    assert problem.startswith(str(fleet.path))
