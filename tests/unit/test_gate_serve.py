"""`vllm bench serve` in a container: what it is told, how the time cap works, when its figures are believed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.fleet.files import DATASETS
from modules.gating.identity import workloads
from modules.hostside import bench_serve, gate_faults, run_gate
from modules.hostside.gate_serve import conversations, entries, request_of, serve_arguments, serve_faults

GATE = workloads(load_catalog().gates["lab-everything"])
DATASET = DATASETS / GATE["sharegpt"]["dataset"]["file"]


def options(datasets: Path = DATASETS) -> Any:
    words = ["--service", "gpt-oss", "--release", "r1", "--url", "http://127.0.0.1:8000", "--model", "o/m"]
    words += ["--served-as", "m", "--gate", json.dumps(GATE), "--measure", "{}", "--workload-id", "w"]
    words += ["--tokenizer", "/hub/m", "--model-path", "/hub/m", "--key-variable", "VLLM_API_KEY"]
    return run_gate.parsed([*words, "--datasets", str(datasets)])


def test_random_prompts_are_told_whole() -> None:
    words = " ".join(serve_arguments("random", options(), {**GATE["random"], "rate": 2.5}))
    assert "--backend vllm --endpoint /v1/completions --dataset-name random --ignore-eos" in words
    assert "--random-input-len 64 --random-output-len 16" in words
    assert "--num-prompts 24 --max-concurrency 4" in words
    assert "--request-rate 2.5" in words
    assert "--save-detailed" in words


def test_no_key_is_on_a_command_line_and_every_run_has_its_seed(tmp_path: Path) -> None:
    sha256 = GATE["sharegpt"]["dataset"]["sha256"]
    (tmp_path / f"{sha256}.json").write_bytes(DATASET.read_bytes())
    request = request_of("sharegpt", options(tmp_path), GATE["sharegpt"], 3)
    assert request["key_variable"] == "VLLM_API_KEY"
    assert len(set(request["seeds"])) == 3
    assert request["time_cap_s"] == 30
    assert len(request["dataset"]) == 2600
    assert "--dataset-name sharegpt" in " ".join(request["argv"])


def test_no_two_prompts_begin_alike_though_there_are_more_than_conversations() -> None:
    sha256 = hashlib.sha256(DATASET.read_bytes()).hexdigest()
    assert sha256 == GATE["sharegpt"]["dataset"]["sha256"]
    found = conversations(DATASET, sha256, 500, seed=6)
    assert len({one["conversations"][0]["value"][:14] for one in found}) == 500
    # What has no answer can not be replayed.
    assert all(len(one["conversations"]) > 1 for one in found)


@pytest.mark.parametrize("chunk", [7, 1000, 1 << 20])
def test_a_dataset_is_read_piece_by_piece(chunk: int) -> None:
    assert list(entries(DATASET, chunk)) == json.loads(DATASET.read_text())


def test_every_conversation_has_its_chance() -> None:
    sha256 = GATE["sharegpt"]["dataset"]["sha256"]
    asked = [{one["id"] for one in conversations(DATASET, sha256, 20, seed)} for seed in range(60)]
    assert all(len(ids) == 20 for ids in asked)
    # 60 times 20 of 200: all but a few of them.
    assert len(set.union(*asked)) > 190


def test_another_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="not the dataset that was asked for"):
        conversations(DATASET, "0" * 64, 10, seed=6)
    with pytest.raises(SystemExit, match="could not be read"):
        conversations(tmp_path / "none.json", "0" * 64, 10, seed=6)


class Output:
    """As vLLM's of a request."""

    def __init__(self) -> None:
        self.success, self.error, self.start_time = False, "", 0.0


def test_nothing_is_sent_after_the_cap_and_what_was_sent_is_let_finish() -> None:
    sent: list[float] = []

    async def requests(count: int) -> AsyncIterator[int]:
        for number in range(count):
            yield number

    async def send(pause_s: float) -> Output:
        sent.append(pause_s)
        await asyncio.sleep(pause_s)
        output = Output()
        output.success = True
        return output

    serve = SimpleNamespace(get_request=requests, RequestFuncOutput=Output)
    cap = bench_serve.Cap(serve, 0.05)
    capped = cap.capped(send)

    async def run() -> list[Output]:
        # Before the run begins there is no cap: its warm-up.
        warm_up = await capped(0.0)
        assert [each async for each in serve.get_request(2)] == [0, 1]
        first = await capped(0.1)
        return [warm_up, first, await capped(0.0)]

    found = asyncio.run(run())
    assert [one.success for one in found] == [True, True, False]
    assert found[2].error == bench_serve.NOT_SENT
    assert sent == [0.0, 0.1]
    cap.rest()
    assert asyncio.run(capped(0.0)).success


RESULT: dict[str, Any] = {
    "completed": 2, "failed": 1, "duration": 30.4, "output_throughput": 10.0, "request_goodput": None,
    "errors": ["", "", bench_serve.NOT_SENT], "generated_texts": ["a b", "c d", ""], "output_lens": [16, 16, 0],
    "itls": [[0.1] * 15, [0.1] * 14 + [0.4], []], "median_ttft_ms": 12.0,
}  # fmt: skip


def test_what_was_not_sent_has_not_failed() -> None:
    found = bench_serve.summary(RESULT, 31.0)
    assert (found["completed"], found["failed"], found["not_sent"]) == (2, 0, 1)
    assert (found["fewest_tokens"], found["longest_pause_s"], found["empty"], found["one_piece"]) == (16, 0.4, 0, 0)
    assert "itls" not in found
    assert serve_faults("random", found, {"prompts": 3, "output": 16, "longest_pause_s": 15.0}) == []


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"errors": ["", "", "Bad Gateway"]}, gate_faults.FAILED),
        ({"errors": ["", ""], "generated_texts": ["a b", "c d"]}, gate_faults.FAILED),
        ({"completed": 0, "errors": [bench_serve.NOT_SENT] * 3, "output_lens": [0] * 3}, gate_faults.NONE),
        ({"output_lens": [16, 7, 0]}, gate_faults.TOO_FEW),
        ({"generated_texts": ["a b", "", ""]}, gate_faults.EMPTY),
        ({"itls": [[0.1] * 15, [], []]}, gate_faults.NOT_STREAMED),
        ({"itls": [[0.1] * 15, [20.0] * 15, []]}, gate_faults.STALLED),
    ],
)
def test_runs_that_measure_nothing(changes: dict[str, Any], kind: str) -> None:
    found = bench_serve.summary({**RESULT, **changes}, 31.0)
    faults = serve_faults("random", found, {"prompts": 3, "output": 16, "longest_pause_s": 15.0})
    assert [one["kind"] for one in faults] == [kind]
