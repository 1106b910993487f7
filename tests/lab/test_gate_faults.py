"""Servers that misbehave: each fails the gate, with its cause named. The program and its client are the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.gating import Verdict
from modules.spec.gate import BenchyWorkload, Gate, Threshold
from tests.lab.fake_engine import Behaviour, handler, served
from tests.lab.gated_fake import HEALTHY, FakeHost, Gated

pytestmark = pytest.mark.long

DECODE = "tg32@pp256 c1"
GATE = Gate(
    workload=BenchyWorkload(pp=(256,), tg=(32,), runs=10, coherence=False, time_limit_s=300),
    answers="gpt-oss",
    # So loose that no speed fails it.
    thresholds={DECODE: Threshold(min=1)},
)


def gated(folder: Path, behaviour: Behaviour) -> Gated:
    host = FakeHost(folder, GATE)
    with served(handler(behaviour)) as (url, server):

        def die() -> None:
            host.say("failed", "failed", restarts=0)
            server.socket.close()

        behaviour.dies = die
        return host.gated(url)


def test_a_server_that_does_as_it_should_passes(tmp_path: Path) -> None:
    found = gated(tmp_path, Behaviour())
    assert found.decision.judgement.verdict is Verdict.PASS, found.log
    assert found.stored["faults"] == []
    assert all(reply["right"] for reply in found.stored["parts"]["answers"][0]["replies"])
    (benchy,) = found.stored["parts"]["benchy"]
    assert (benchy["requests"], benchy["generated_tokens"]) == (10, 320)
    assert len(found.measured.metrics[DECODE].values) == 10
    samples = found.stored["samples"]
    assert samples["clock_mhz"][0] == 2418.0
    assert samples["memory_available_gib"][0] > 0
    # One a second, as long as it took.
    assert len(samples["power_w"]) <= found.stored["seconds"] + 1


@pytest.mark.parametrize(
    ("behaviour", "kind", "workload"),
    [
        (Behaviour(fault="no-stream"), "not-streamed", "answers"),
        (Behaviour(fault="one-piece"), "not-streamed", "answers"),
        (Behaviour(fault="tenth-fails"), "failed-requests", "benchy"),
        (Behaviour(fault="cached"), "cached-answers", "answers"),
        (Behaviour(fault="stall"), "stalled", "answers"),
        (Behaviour(fault="wrong-usage"), "wrong-usage", "answers"),
        (Behaviour(fault="empty"), "empty-content", "answers"),
        (Behaviour(fault="dies"), "server-died", "answers"),
    ],
    ids=lambda value: value.fault if isinstance(value, Behaviour) else "",
)
def test_each_fault_fails_the_gate_and_is_named(tmp_path: Path, behaviour: Behaviour, kind: str, workload: str) -> None:
    found = gated(tmp_path, behaviour)
    assert found.decision.judgement.verdict is Verdict.FAIL
    assert found.decision.settled
    assert {(one["kind"], one["workload"]) for one in found.stored["faults"]} == {(kind, workload)}, found.log
    assert found.causes[0].name == kind
    assert found.causes[0].evidence


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (Behaviour(fault="no-stream"), "not-streamed"),
        (Behaviour(fault="one-piece"), "not-streamed"),
        (Behaviour(fault="stall"), "stalled"),
        (Behaviour(fault="wrong-usage", token_ids=False), "wrong-usage"),
        (Behaviour(fault="empty", token_ids=False), "empty-content"),
        (Behaviour(fault="dies"), "server-died"),
    ],
    ids=lambda value: value.fault if isinstance(value, Behaviour) else "",
)
def test_without_questions_the_benchmark_itself_finds_it(tmp_path: Path, behaviour: Behaviour, kind: str) -> None:
    host = FakeHost(tmp_path, GATE.model_copy(update={"answers": None}), answers=None)
    with served(handler(behaviour)) as (url, server):

        def die() -> None:
            host.say("failed", "failed", restarts=0)
            server.socket.close()

        behaviour.dies = die
        found = host.gated(url)
    assert found.decision.judgement.verdict is Verdict.FAIL
    assert {(one["kind"], one["workload"]) for one in found.stored["faults"]} == {(kind, "benchy")}, found.log
    assert found.causes[0].name == kind


FULL_CACHE = "vllm:kv_cache_usage_perc 0.99\nvllm:num_requests_waiting 3\nvllm:num_requests_running 1\n"
COOLING = ("2418, 42.0, 84, 95",) * 2 + ("1900, 35.0, 88, 95",)


@pytest.mark.parametrize(
    ("samples", "processes", "metrics", "name"),
    [
        (("611, 17.0, 51, 96",), (), "", "low-power-state"),
        ((HEALTHY.replace("42.0", "17.0"),), (), "", "low-power-at-full-clock"),
        (COOLING, (), "", "thermal-limit"),
        ((HEALTHY,), (), FULL_CACHE, "kv-cache-full"),
        ((HEALTHY,), (), "vllm:num_requests_running 4\n", "strange-requests"),
        # Of no container of Tinderbox: there is no such process.
        ((HEALTHY,), (999_999_999,), "", "other-gpu-processes"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.islower() and "\n" not in value else "",
)
def test_what_was_sampled_while_it_was_too_slow_is_named_as_its_cause(
    tmp_path: Path, samples: tuple[str, ...], processes: tuple[int, ...], metrics: str, name: str
) -> None:
    slow = Gate(
        workload=BenchyWorkload(pp=(64,), tg=(32,), runs=3, coherence=False, time_limit_s=300),
        thresholds={"tg32@pp64 c1": Threshold(min=1000)},
        most_runs=3,
    )
    host = FakeHost(tmp_path, slow, answers=None)
    host.show(*samples, processes=processes)
    with served(handler(Behaviour(token_s=0.05, metrics=metrics))) as (url, _):
        found = host.gated(url)
    assert (found.decision.judgement.verdict, found.stored["faults"]) == (Verdict.FAIL, []), found.log
    # This machine's own load may be told beside it, where it is one.
    assert [cause.name for cause in found.causes if cause.name != "busy-processor"] == [name]


def test_a_server_that_somebody_restarts_is_not_judged(tmp_path: Path) -> None:
    behaviour = Behaviour()
    host = FakeHost(tmp_path, GATE)
    with served(handler(behaviour)) as (url, _):
        host.measure(url, {"answers": 1})
        before = host.stored
        text = (tmp_path / "unit").read_text().replace("0123", "4567")
        (tmp_path / "unit").write_text(text)
        with pytest.raises(AssertionError, match="restarted since the first runs"):
            host.measure(url, {"benchy": 3}, append=True)
    assert host.stored == before
