"""What a dry run found, thing by thing, and the status that it ends with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.converge.drift import HostState, drift_document, drift_lines, drift_of, drift_status
from modules.converge.outcome import Outcome
from modules.converge.run import Pass
from modules.facts.files import FileState, FileTexts
from modules.operations.differences import file_detail
from modules.operations.managed_files import ManagedFile
from modules.reporting.differences import DIFFERENCES_FILE, Difference, note_difference, read_differences
from modules.reporting.host_errors import HostError

UNIT = Difference(host="spark-2", operation="Engine | Service a", thing="unit a.service", detail="differs:\n-x\n+y")


def seen(
    *differences: Difference,
    changed: dict[str, list[str]] | None = None,
    failed: dict[str, list[str]] | None = None,
    refused: dict[str, list[str]] | None = None,
    errors: dict[str, list[HostError]] | None = None,
    finished: bool = True,
) -> Pass:
    outcome = Outcome(3, changed or {}, failed or {}, refused or {})
    return Pass(outcome, 0, True, finished, 1.0, errors or {}, differences=differences)


def test_a_difference_is_told_by_host_and_thing() -> None:
    drift = drift_of(["spark-1", "spark-2"], seen(UNIT, changed={"spark-2": ["Engine | Service a"]}))
    assert [one.state for one in drift] == [HostState.SAME, HostState.DIFFERS]
    assert [line for line, _ in drift_lines(drift)] == [
        "spark-2: unit a.service differs:",
        "    -x",
        "    +y",
        "2 hosts: 1 same, 1 differs",
    ]
    assert drift_status(drift) == 2
    document = json.loads(json.dumps(drift_document("office", drift, 1.04)))
    assert document["hosts"]["spark-1"] == {"state": "same", "differences": [], "why": []}
    assert document["hosts"]["spark-2"]["differences"] == [
        {"operation": "Engine | Service a", "thing": "unit a.service", "detail": "differs:\n-x\n+y"}
    ]


def test_an_operation_that_would_change_and_says_not_what_is_a_difference_all_the_same() -> None:
    changed = {"spark-1": ["Weights | Weights m from outside", "Old images | prune"]}
    noted = Difference(host="spark-1", operation="Weights | Weights m", thing="weights m", detail="model-1: missing")
    (drift,) = drift_of(["spark-1"], seen(noted, changed=changed))
    assert [one["thing"] for one in drift.differences] == ["weights m", "Old images | prune"]


def test_what_a_host_would_do_for_others_alone_is_no_difference_of_its_own() -> None:
    noted = Difference(host="spark-1", operation="Weights | m given", thing="", detail="")
    (drift,) = drift_of(["spark-1"], seen(noted, changed={"spark-1": ["Weights | m given"]}))
    assert (drift.state, drift_status([drift])) == (HostState.SAME, 0)


def test_a_host_that_does_not_answer_is_unknown_and_has_a_status_of_its_own() -> None:
    gone = {"spark-1": [HostError(host="spark-1", operation="", said="Could not connect (no route)")]}
    drift = drift_of(["spark-1", "spark-2"], seen(failed={"spark-1": []}, errors=gone))
    assert [one.state for one in drift] == [HostState.UNKNOWN, HostState.SAME]
    assert drift_status(drift) == 3
    assert [line for line, _ in drift_lines(drift)] == [
        "spark-1: unknown:",
        "    Could not connect (no route)",
        "2 hosts: 1 same, 1 unknown",
    ]
    assert drift_status(drift_of(["spark-1", "spark-2"], seen(UNIT, failed={"spark-1": []}, errors=gone))) == 2
    alone = drift_of(["spark-1"], seen(failed={"spark-1": []}, errors=gone, finished=False))
    assert drift_status(alone) == 3


def test_a_host_that_can_not_be_brought_there_differs() -> None:
    blocked = [HostError(host="spark-1", operation="", said="preflight blocked: spark-1: driver 590 deadlocks")]
    foreseen = [HostError(host="spark-2", operation="s", said="not tried again: too slow", foreseen=True)]
    drift = drift_of(
        ["spark-1", "spark-2"],
        seen(failed={"spark-1": []}, refused={"spark-2": ["s"]}, errors={"spark-1": blocked, "spark-2": foreseen}),
    )
    assert [one.state for one in drift] == [HostState.REFUSED, HostState.REFUSED]
    assert drift[1].why == ("not tried again: too slow",)
    assert drift_status(drift) == 2


@pytest.mark.parametrize(
    ("content", "found", "text", "detail"),
    [
        (None, FileState("s", "644", "root:root"), "x\n", "is there, and should not be"),
        ("x\n", None, None, "is not there"),
        ("x\n", FileState("s", "644", "root:root"), None, "holds something else, or has another mode or owner (not "
         "shown: it may hold secrets)"),
        ("x\n", FileState("s", "666", "root:root"), "x\n", "has mode 666 and owner root:root, and should not"),
        ("a\nx\n", FileState("s", "644", "root:root"), "a\ny\n", "differs:\n-y\n+x"),
        ("x\n", FileState("s", "644", "root:root"), "x", "differs:\n(only in how it ends)"),
    ],
)  # fmt: skip
def test_how_a_file_differs(content: str | None, found: FileState | None, text: str | None, detail: str) -> None:
    assert file_detail(ManagedFile("/etc/x", content), found, text) == detail


def test_of_a_long_difference_the_first_lines_are_told() -> None:
    detail = file_detail(
        ManagedFile("/etc/x", "".join(f"{number}\n" for number in range(50))), FileState("s", "644", "root:root"), ""
    )
    assert len(detail.splitlines()) == 9
    assert detail.endswith("... 43 more lines")


def test_differences_pass_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "differences.jsonl"
    note_difference(UNIT)
    assert read_differences(path) == []
    monkeypatch.setenv(DIFFERENCES_FILE, str(path))
    note_difference(UNIT)
    note_difference(UNIT)
    path.write_text(path.read_text() + '{"host": "cut')
    assert read_differences(path) == [UNIT]


def test_texts_of_files_are_read_from_a_hosts_answer() -> None:
    lines = ["ZcO8cjEK /etc/a b", "gA== /etc/binary", " /etc/empty", "end"]
    assert FileTexts().parse(lines) == {"/etc/a b": "eür1\n", "/etc/empty": ""}
