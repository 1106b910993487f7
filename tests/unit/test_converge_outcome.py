"""What the wrapper makes of pyinfra's JSON."""

from __future__ import annotations

import json

import pytest

from modules.converge.outcome import NoResultsError, Outcome, parse_outcome
from modules.converge.summary import completed, excerpt, summary
from modules.reporting.host_errors import HostError

Json = dict[str, object]


def document(*operations: Json, failed: tuple[str, ...] = (), plan: tuple[Json, ...] = ()) -> str:
    results = {"operations": list(operations), "totals": {}, "failed_hosts": list(failed)}
    return json.dumps({"plan": list(plan), "results": results})


def operation(name: str, *, success: tuple[str, ...] = (), error: tuple[str, ...] = ()) -> Json:
    return {"name": name, "success": list(success), "error": list(error), "no_change": []}


def test_a_converged_fleet_has_no_change_and_no_failure() -> None:
    outcome = parse_outcome(document(operation("one"), operation("two")), dry=False)
    assert outcome == Outcome(operations=2)
    assert summary(outcome, {}, dry=False) == [("no change on any host (2 operations)", "green")]


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
    assert summary(outcome, {}, dry=False)[0] == ("spark-2: FAILED before its first operation", "red")


def error(host: str, said: str, operation: str = "") -> HostError:
    return HostError(host=host, operation=operation, said=said)


def test_below_a_failed_host_stands_what_its_last_operation_said() -> None:
    outcome = Outcome(operations=2, failed={"spark-2": ["two"]})
    errors = [error("spark-2", "hiccup", "one"), error("spark-2", "spark-2: no disk\nbuy one", "two")]
    assert [line for line, _ in summary(outcome, {"spark-2": errors}, dry=False)] == [
        "spark-2: FAILED at two",
        "    no disk",
        "    buy one",
    ]


def test_of_a_long_error_the_first_and_the_last_lines_are_told() -> None:
    errors = [error("spark-1", f"line {number}", "build") for number in range(30)]
    assert excerpt(errors) == ["line 0", "...", "line 25", "line 26", "line 27", "line 28", "line 29"]
    assert len(excerpt(errors[:7])) == 7


def test_a_run_without_results_names_the_hosts_that_failed() -> None:
    errors = {"spark-1": [error("spark-1", "not reached")], "spark-2": [error("spark-2", "broken", "two")]}
    assert completed(None, errors, dry=False).failed == {"spark-1": [], "spark-2": ["two"]}


def test_a_host_that_a_dry_run_can_not_reach_is_no_unchanged_one() -> None:
    outcome = completed(Outcome(operations=1), {"spark-2": [error("spark-2", "not reached")]}, dry=True)
    assert summary(outcome, {}, dry=True) == [("spark-2: FAILED before its first operation", "red")]


def test_a_host_that_a_dry_run_did_not_reach_is_unknown_and_has_not_failed() -> None:
    errors = {"spark-2": [error("spark-2", "Could not connect (timed out)")]}
    outcome = completed(None, errors, dry=True)
    assert summary(outcome, errors, dry=True) == [
        ("spark-2: unknown, it was not reached", "yellow"),
        ("    Could not connect (timed out)", "yellow"),
    ]
    assert summary(outcome, errors, dry=False)[0] == ("spark-2: FAILED before its first operation", "red")


def test_a_dry_run_says_what_would_be_refused_and_why_and_not_that_it_would_change() -> None:
    known = Outcome(operations=2, changed={"spark-1": ["site", "service"], "spark-2": ["site"]})
    refusal = HostError(host="spark-1", operation="service", said="not tried again: too slow", foreseen=True)

    outcome = completed(known, {"spark-1": [refusal]}, dry=True)

    assert outcome.failed == {}
    assert [line for line, _ in summary(outcome, {"spark-1": [refusal]}, dry=True)] == [
        "spark-1: would be refused at service",
        "    not tried again: too slow",
        "spark-1, spark-2: would change 1: site",
    ]
    only = completed(Outcome(operations=1, changed={"spark-1": ["service"]}), {"spark-1": [refusal]}, dry=True)
    assert (only.changed, only.refused) == ({}, {"spark-1": ["service"]})
    assert "no change" not in str(summary(only, {"spark-1": [refusal]}, dry=True))


def test_an_error_that_did_not_fail_its_host_makes_no_failure_of_it() -> None:
    errors = {"spark-1": [error("spark-1", "lost the connection, found it again", "one")]}
    assert completed(Outcome(operations=1), errors, dry=False) == Outcome(operations=1)


def test_a_dry_run_lists_what_would_change() -> None:
    plan = ({"name": "one", "hosts_with_change": ["spark-1"]}, {"name": "two", "hosts_with_change": []})
    text = json.dumps({"plan": list(plan), "results": None})
    assert parse_outcome(text, dry=True).changed == {"spark-1": ["one"]}


def test_a_long_list_of_changes_is_told_stage_by_stage_and_once_for_hosts_of_which_the_same_is_true() -> None:
    names = ["Site | programs", "Site | proxies", "CUDA | Package x", "requirement met"]
    outcome = Outcome(operations=4, changed={"spark-1": names, "spark-2": names, "spark-3": names[:1]})
    assert [line for line, _ in summary(outcome, {}, dry=True)] == [
        "spark-1, spark-2: would change 4:",
        "    Site: programs, proxies",
        "    CUDA: Package x",
        "    other: requirement met",
        "spark-3: would change 1: Site | programs",
    ]


@pytest.mark.parametrize("text", ["", "not json", "[]", "{}", json.dumps({"plan": [], "results": None})])
def test_no_results_are_never_taken_for_success(text: str) -> None:
    with pytest.raises(NoResultsError):
        parse_outcome(text, dry=False)
