"""What check tells: its form for programs, its exit status, and what a fleet has to fetch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.check import kept
from modules.check.document import SCHEMA, CheckDocument, HostCheck, Move, schema
from modules.check.text import fleet_bytes, lines_of, summary
from modules.check.verdict import BLOCKED, READY, SLOW, UNKNOWN, document, status_of
from modules.facts.machine import machine_state
from modules.facts.machine_state import MachineState
from modules.fleet import HostPlan
from modules.memory import MemoryPlan
from modules.reporting.host_errors import HostError
from modules.spec.lock import Lock
from roles.preflight.foresee import checked, minutes, moves
from roles.preflight.foresee_memory import foreseen
from roles.preflight.judge import judge
from roles.preflight.space import image_name, needs
from tests.unit.finding_samples import KEY, MODEL, NOTHING_STORED, SERVICE, plan_of
from tests.unit.preflight_machine import GIB, answer

LOCK = Lock()


def state_of(**changes: object) -> MachineState:
    state = machine_state(answer(**{"models": NOTHING_STORED, **changes}))
    assert isinstance(state, MachineState)
    return state


def host(name: str, verdict: str, *sizes: int | None) -> HostCheck:
    parts = [{"kind": "weights", "what": f"m{number}", "bytes": size} for number, size in enumerate(sizes)]
    return HostCheck.model_validate({"host": name, "verdict": verdict, "moves": parts})


def test_the_schema_is_that_of_the_code() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema()
    assert json.loads(schema())["properties"]["version"]["const"] == 1


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        (["ready", "ready"], READY),
        (["ready", "slow"], SLOW),
        (["slow", "unknown"], UNKNOWN),
        (["unknown", "blocked", "slow"], BLOCKED),
    ],
)
def test_the_status_is_the_worst_that_is_certain_and_then_what_is_not(verdicts: list[str], status: int) -> None:
    assert status_of([host("a", verdict) for verdict in verdicts]) == status


def test_a_host_that_told_nothing_is_unknown_with_its_reason() -> None:
    gone = HostError(host="b", operation="", said="Could not connect (timed out)")
    found = document("lab", ["a", "b", "c"], {"a": host("a", "ready")}, {"b": [gone]}, 1.26)
    assert [one.verdict for one in found.hosts] == ["ready", "unknown", "unknown"]
    assert found.hosts[1].why == ("Could not connect (timed out)",)
    assert found.hosts[2].why == ("the run ended before it was looked at",)
    assert (found.status, found.seconds) == (UNKNOWN, 1.3)
    assert CheckDocument.model_validate_json(found.model_dump_json(by_alias=True)) == found
    assert [line for line, _ in summary(found.hosts)][1:3] == ["b: unknown", "    Could not connect (timed out)"]


def test_what_hosts_hand_on_is_kept_whole_and_a_cut_line_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hosts.jsonl"
    kept.keep(host("nobody", "ready"))
    monkeypatch.setenv(kept.CHECK_FILE, str(path))
    plan = plan_of({})
    state = state_of()
    one = checked(state, plan, LOCK, judge(state, plan, LOCK))
    kept.keep(one)
    with path.open("a") as file:
        file.write('{"host": "spark-2", "verd')
    assert kept.read(path) == {"spark-1": one}


def test_what_is_there_is_not_moved_again() -> None:
    plan = plan_of({})
    new = {move.kind: move.bytes for move in moves(state_of(), plan, LOCK, needs(state_of(), plan, LOCK))}
    assert new == {"weights": round(60.8 * GIB), "image": 25 * GIB, "encodings": 3_613_922 + 1_681_126}
    half = state_of(
        models={KEY: {"snapshot": 30 * GIB, "pieces": 10 * GIB}},
        encodings={"o200k_base.tiktoken": 3_613_922, "fb374d419588a4632f3f557e76b4b70aebbca790": 3_613_922},
    )
    left = {move.kind: move.bytes for move in moves(half, plan, LOCK, needs(half, plan, LOCK))}
    assert left == {"weights": round(20.8 * GIB), "image": 25 * GIB, "encodings": 1_681_126}


def test_a_host_that_has_everything_moves_nothing_and_says_so() -> None:
    plan = plan_of({})
    (service,) = plan.services
    names = {"o200k_base.tiktoken": 3_613_922, "fb374d419588a4632f3f557e76b4b70aebbca790": 3_613_922}
    names |= {"cl100k_base.tiktoken": 1_681_126, "9b5ad71b2ce5302211f9c61530b329a4922fc6a4": 1_681_126}
    name, _, tag = image_name(service.recipe, LOCK).rpartition(":")
    state = state_of(
        models={KEY: {"snapshot": round(60.7 * GIB), "pieces": 0}},
        images={"status": 0, "output": f"{name} {tag} {service.recipe.digest or '<none>'}\n"},
        encodings=names,
        running=[f"tinderbox-{SERVICE}"],
    )
    first, *more = lines_of(checked(state, plan, LOCK, judge(state, plan, LOCK)))
    assert first == "ready; to move: nothing"
    assert [line.partition(":")[0] for line in more] == ["memory"]


def test_what_does_not_run_is_told_to_be_started() -> None:
    plan = plan_of({})
    host = checked(state_of(), plan, LOCK, judge(state_of(), plan, LOCK))
    assert host.starts == (SERVICE,)
    ended = f"; to start: {SERVICE}"
    assert lines_of(host)[0].endswith(ended)
    assert next(line for line, _ in summary([host])).endswith(ended)


def of_engine(engine: str) -> HostPlan:
    return plan_of({"services": {SERVICE: {"engine": engine, "model": "gpt-oss-120b"}}})


def test_minutes_have_a_source_or_are_unknown() -> None:
    plan = of_engine("vllm-mxfp4")
    told = {one.what.split()[0]: one for one in minutes(state_of(), plan, needs(state_of(), plan, LOCK))}
    assert (told["the"].from_, told["the"].to) == (None, None)
    assert told["the"].source == "as the line allows; 9 at 1 Gbit/s"
    assert (told["image"].from_, told["image"].to) == plan.services[0].recipe.build_minutes
    assert "others reported" in told["image"].source
    assert told["start"].to == 20
    again = state_of(build_seconds={plan.services[0].recipe.name: 1890.0})
    (build,) = [one for one in minutes(again, plan, needs(again, plan, LOCK)) if one.what.startswith("image")]
    assert (build.from_, build.to, build.source) == (31.5, 31.5, "as its steps took on this host before")


def planned(state: MachineState) -> MemoryPlan:
    found = foreseen(state, plan_of({}))[SERVICE].plan
    assert found is not None
    return found


def test_memory_is_reckoned_by_the_catalog_before_and_by_the_checkpoint_once_it_is_there() -> None:
    before = foreseen(state_of(), plan_of({}))[SERVICE]
    assert (before.known_by, planned(state_of()).fits) == ("catalog", True)
    summary_of_files = {
        "format": "safetensors", "tensors": {"U8": 60 * GIB}, "config": {"model_type": "odd"}, "problems": [],
    }  # fmt: skip
    stored = {KEY: {"snapshot": round(60.8 * GIB), "pieces": 0, "checkpoint": summary_of_files}}
    after = foreseen(state_of(models=stored), plan_of({"services": {
        SERVICE: {"engine": "vllm", "model": "gpt-oss-120b", "flags": {"max-model-len": 8192}}}}))[SERVICE]  # fmt: skip
    assert after.known_by == "checkpoint"
    assert after.plan is not None
    cut = {KEY: {**stored[KEY], "snapshot": 20 * GIB}}
    assert foreseen(state_of(models=cut), plan_of({}))[SERVICE].known_by == "catalog"


def test_a_size_that_nobody_knows_stays_unknown() -> None:
    model = MODEL.model_copy(update={"size_gib": None}).model_dump(mode="json", exclude_none=True)
    plan = plan_of({"services": {SERVICE: {"engine": "vllm", "model": model}}})
    assert foreseen(state_of(), plan)[SERVICE].known_by == "unknown"
    one = checked(state_of(), plan, LOCK, [])
    assert [move.bytes for move in one.moves if move.kind == "weights"] == [None]
    assert "weights of openai/gpt-oss-120b (size unknown)" in lines_of(one)[0]


def test_hosts_give_each_other_what_one_has_or_fetches() -> None:
    assert fleet_bytes([host("a", "ready", 5), host("b", "ready", 5), host("c", "ready", 5)]) == (5, 10)
    assert fleet_bytes([host("a", "ready", 0), host("b", "ready", 5)]) == (0, 5)
    assert fleet_bytes([host("a", "ready", None), host("b", "ready", 0)]) == (0, 0)
    both = host("a", "ready").model_copy(update={"moves": (Move(kind="encodings", what="e", bytes=7),)})
    assert fleet_bytes([both, both]) == (14, 0)
