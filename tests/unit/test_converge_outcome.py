"""What the wrapper makes of pyinfra's JSON."""

from __future__ import annotations

import json

import pytest

from modules.converge.__main__ import summary
from modules.converge.outcome import NoResultsError, Outcome, parse_outcome, unmatched

Json = dict[str, object]


def document(*operations: Json, failed: tuple[str, ...] = (), plan: tuple[Json, ...] = ()) -> str:
    results = {"operations": list(operations), "totals": {}, "failed_hosts": list(failed)}
    return json.dumps({"plan": list(plan), "results": results})


def operation(name: str, *, success: tuple[str, ...] = (), error: tuple[str, ...] = ()) -> Json:
    return {"name": name, "success": list(success), "error": list(error), "no_change": []}


def test_a_converged_fleet_has_no_change_and_no_failure() -> None:
    outcome = parse_outcome(document(operation("one"), operation("two")), dry=False)
    assert outcome == Outcome(operations=2)
    assert summary(outcome, dry=False) == [("no change on any host (2 operations)", "green")]


def test_changes_and_failures_are_listed_by_host_and_the_first_failure_is_the_cause() -> None:
    outcome = parse_outcome(
        document(
            operation("one", success=("spark-1",), error=("spark-2",)),
            operation("two", success=("spark-1",), error=("spark-2",)),
            failed=("spark-2",),
        ),
        dry=False,
    )
    assert outcome.changed == {"spark-1": ["one", "two"]}
    assert outcome.failed == {"spark-2": ["one"]}


def test_a_host_that_never_connected_has_failed() -> None:
    outcome = parse_outcome(document(operation("one"), failed=("spark-2",)), dry=False)
    assert outcome.failed == {"spark-2": []}
    assert summary(outcome, dry=False)[0] == ("spark-2: FAILED before its first operation", "red")


def test_a_dry_run_lists_what_would_change() -> None:
    plan = ({"name": "one", "hosts_with_change": ["spark-1"]}, {"name": "two", "hosts_with_change": []})
    text = json.dumps({"plan": list(plan), "results": None})
    assert parse_outcome(text, dry=True).changed == {"spark-1": ["one"]}


@pytest.mark.parametrize("text", ["", "not json", "[]", "{}", json.dumps({"plan": [], "results": None})])
def test_no_results_are_never_taken_for_success(text: str) -> None:
    with pytest.raises(NoResultsError):
        parse_outcome(text, dry=False)


def test_limits_match_groups_and_patterns_of_host_names() -> None:
    hosts, groups = ["spark-1", "spark-2"], ["desk"]
    assert unmatched(["spark-*", "desk", "spark-2"], hosts, groups) == []
    assert unmatched(["spark-9", "rack", "Spark-1"], hosts, groups) == ["spark-9", "rack", "Spark-1"]
