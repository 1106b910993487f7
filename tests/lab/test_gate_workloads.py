"""All kinds of workload on the real vLLM: figures agree with each other and with what the engine itself counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.fleet.lock import lock_path
from modules.release.layout import gate_result_file
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-1"
GATE = load_catalog().gates["lab-everything"]


@pytest.fixture(scope="module")
def everything(lab: Lab, main_fleet: Path, first_run: Run) -> Iterator[tuple[Path, Run, Served]]:
    """The gate with all five kinds, asked for on the host that serves."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        content["defaults"]["services"]["gpt-oss"]["gate"] = "lab-everything"

    fleet = lab.write_fleet("gate-everything", change)
    # What tags stand for is known, as after a fleet's first run: else its first whole run would ask for that.
    lock_path(fleet).write_text(lock_path(main_fleet).read_text())
    served = Served(lab, fleet, HOST)
    served.await_ready()
    yield fleet, lab.converge("deploys/gate.py", fleet=fleet, timeout_s=2400), served
    # The other tests expect what its own gate has measured.
    lab.converge("deploys/gate.py", fleet=main_fleet)


@pytest.fixture(scope="module")
def stored(lab: Lab, everything: tuple[Path, Run, Served]) -> dict[str, Any]:
    """The result on the host."""
    _, run, served = everything
    assert run.rc == 0, run.text
    found: dict[str, Any] = json.loads(lab.read(HOST, gate_result_file(served.plan.name, served.release())))
    return found


def repetitions(stored: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stored["parts"][kind]
    assert found
    return found


def test_all_five_kinds_are_run_and_none_has_a_fault(
    everything: tuple[Path, Run, Served], stored: dict[str, Any]
) -> None:
    assert set(stored["parts"]) == {"cold_start", "answers", "benchy", "random", "sharegpt"}
    assert stored["faults"] == []
    assert stored["judgement"]["verdict"] in {"PASS", "WARN"}
    assert re.search(r"measuring, since .+: .*at most \d+", everything[1].text)


def test_the_engine_counts_what_the_clients_count(stored: dict[str, Any]) -> None:
    # Exactly: every token that a client did not see is one that it threw away, and known.
    (answers,) = repetitions(stored, "answers")
    assert answers["counted_by_engine"]["generation_tokens"] == answers["generated_tokens"]
    assert answers["counted_by_engine"]["requests"] == answers["requests"]
    for benchy in repetitions(stored, "benchy"):
        (asked,) = GATE.workload.tg
        # One run to warm up; two prompts to learn the template's length, of a token each.
        assert benchy["counted_by_engine"]["generation_tokens"] == (benchy["runs"] + 1) * asked + 2
        # Harmony's marks bring no text: three tokens of a reply.
        assert benchy["generated_tokens"] == benchy["runs"] * (asked - 3)
    assert GATE.random is not None
    for random in repetitions(stored, "random"):
        runs, each = random["runs"], GATE.random
        assert random["generated_tokens"] == runs * each.prompts * each.output
        assert random["counted_by_engine"]["generation_tokens"] == runs * (each.prompts + 1) * each.output
        assert random["counted_by_engine"]["requests"] == runs * (each.prompts + 1)
        # A random prompt may come out a token longer or shorter than it was asked for.
        told = sum(result["total_input_tokens"] for result in random["results"])
        assert random["counted_by_engine"]["prompt_tokens"] == pytest.approx(told + runs * each.input, rel=0.02)
    (sharegpt,) = repetitions(stored, "sharegpt")
    counted = sharegpt["counted_by_engine"]
    assert counted["requests"] == sharegpt["requests"] + 1
    assert 0 < counted["generation_tokens"] - sharegpt["generated_tokens"] <= 32


def test_no_prompt_came_out_of_the_prefix_cache(stored: dict[str, Any]) -> None:
    for kind in ("answers", "benchy", "random", "sharegpt"):
        for part in repetitions(stored, kind):
            counted = part["counted_by_engine"]
            assert counted["prefix_cache_hits"] <= 0.02 * counted["prefix_cache_queries"], kind
            assert "unique" in part["prompts"]


def test_the_figures_of_a_run_agree_with_each_other(stored: dict[str, Any]) -> None:
    for kind, streams in (("random", 4), ("sharegpt", 32)):
        for part in repetitions(stored, kind):
            for result in part["results"]:
                tokens, seconds = result["total_output_tokens"], result["duration"]
                assert result["output_throughput"] == pytest.approx(tokens / seconds, rel=0.001)
                assert result["request_throughput"] == pytest.approx(result["completed"] / seconds, rel=0.001)
                whole = result["mean_ttft_ms"] + result["mean_tpot_ms"] * (tokens / result["completed"] - 1)
                assert result["mean_e2el_ms"] == pytest.approx(whole, rel=0.02)
                # Little: as many are under way as were let, but at the ramps; and never more.
                under_way = result["request_throughput"] * result["mean_e2el_ms"] / 1000
                assert 0.5 * streams <= under_way <= 1.02 * streams


def test_the_kinds_agree_about_the_speed(stored: dict[str, Any]) -> None:
    # Other shapes, other streams: within a factor of four, on a machine that others use. Claims of five times are told.
    values = [value for part in repetitions(stored, "benchy") for value in decode(part)]
    single = sum(values) / len(values)
    for part in repetitions(stored, "random"):
        for result in part["results"]:
            one_of_four = 1000 / result["median_tpot_ms"]
            assert single / 4 <= one_of_four <= single * 4
            assert result["output_throughput"] <= 4 * 4 * single


def decode(part: dict[str, Any]) -> list[float]:
    found: list[float] = part["report"]["benchmarks"][0]["tg_throughput"]["values"]
    return found


def test_a_replay_ends_at_its_cap_and_counts_what_it_did(stored: dict[str, Any]) -> None:
    assert GATE.sharegpt is not None
    (part,) = repetitions(stored, "sharegpt")
    (result,) = part["results"]
    assert result["hit_time_cap"] is True
    assert (result["failed"], result["first_error"]) == (0, None)
    assert result["completed"] + result["not_sent"] == GATE.sharegpt.prompts
    assert result["completed"] >= GATE.sharegpt.concurrency
    # It stops sending at its cap, and waits no longer than those that are under way take.
    assert GATE.sharegpt.time_cap_s <= result["duration"] <= GATE.sharegpt.time_cap_s + 2 * result["p99_e2el_ms"] / 1000
    assert result["total_output_tokens"] <= result["completed"] * (GATE.sharegpt.output or 0)


def test_the_start_is_split_by_the_engines_own_log(
    lab: Lab, everything: tuple[Path, Run, Served], stored: dict[str, Any]
) -> None:
    (part,) = repetitions(stored, "cold_start")
    seconds = part["seconds"]
    log = lab.ssh(HOST, f"sudo journalctl --no-pager -o cat -u {everything[2].unit}").stdout
    assert f"Loading weights took {seconds['weights_loading']:.2f} seconds" in log
    assert 0 < seconds["weights_loading"] < seconds["launch_to_ready"]
    assert 0 < seconds["kv_cache"] < seconds["launch_to_ready"]
    # The CPU build captures no graphs, and none are claimed.
    assert seconds["graph_capture"] is None
    parts = seconds["weights_loading"] + seconds["kv_cache"] + seconds["rest"]
    assert parts == pytest.approx(seconds["launch_to_ready"], abs=0.01)


def test_everything_was_sampled_meanwhile(stored: dict[str, Any]) -> None:
    samples = stored["samples"]
    assert len({len(values) for values in samples.values()}) == 1
    # The engine's own gauge saw as many requests as the replay sent, and the warm-up of another at most.
    assert 1 <= max(value for value in samples["requests_running"] if value is not None) <= 33
    assert {value for value in samples["clock_mhz"] if value is not None} == {2418.0}
    assert all(value > 0 for value in samples["memory_available_gib"])


def test_what_was_measured_is_not_measured_again(
    lab: Lab, everything: tuple[Path, Run, Served], stored: dict[str, Any]
) -> None:
    fleet, _, served = everything
    path = gate_result_file(served.plan.name, stored["release"])
    before = lab.ssh(HOST, f"sudo stat -c '%i %Y' {path}").stdout
    run = lab.converge(fleet=fleet)
    assert run.rc == 0, run.text
    assert "no change on any host" in run.stderr
    assert lab.ssh(HOST, f"sudo stat -c '%i %Y' {path}").stdout == before
