"""The measurement on the host: what llama-benchy is told, and when its figures are believed."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from modules.facts.parse.llama_benchy import parse_benchy_json
from modules.hostside import benchy, gate_benchy, gate_faults, gate_result, gate_state, gpu_sample, run_gate
from modules.hostside.benchy_events import Requests
from modules.hostside.gate_benchy import benchy_arguments
from modules.hostside.gate_sampling import Sampling
from modules.hostside.prompts import prose
from tests.unit.benchy_report import cell, report

WORKLOAD: dict[str, Any] = {
    "pp": [512],
    "tg": [32],
    "depth": [0],
    "concurrency": [1, 2],
    "runs": 2,
    "time_limit_s": 300,
    "coherence": True,
    "latency_mode": "none",
    "longest_pause_s": 15.0,
}
TOTAL = 2 + 4


def options(*extra: str) -> Any:
    words = ["--service", "gpt-oss", "--release", "r1", "--url", "http://127.0.0.1:8000", "--model", "o/m"]
    words += ["--served-as", "m", "--gate", json.dumps({"benchy": WORKLOAD}), "--measure", '{"benchy": 2}']
    return run_gate.parsed([*words, "--workload-id", "w", "--tokenizer", "/hub/m", "--model-path", "/hub/m", *extra])


def arguments(workload: dict[str, Any]) -> list[str]:
    return benchy_arguments(options(), workload, 5, Path("/t/report.json"), Path("/t/events.jsonl"))


def test_the_matrix_is_told_whole() -> None:
    words = " ".join(arguments(WORKLOAD))
    assert "--base-url http://127.0.0.1:8000/v1 --model o/m --served-model-name m --tokenizer /hub/m" in words
    assert "--pp 512 --tg 32 --depth 0 --concurrency 1 2 --runs 5 --exact-tg" in words
    assert "--latency-mode none" in words


def test_coherence_is_skipped_only_where_the_gate_says_so() -> None:
    assert "--skip-coherence" not in arguments(WORKLOAD)
    assert "--skip-coherence" in arguments(WORKLOAD | {"coherence": False})


def test_nothing_goes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    environment = gate_benchy.environment(Path("/t"))
    assert not {"HTTPS_PROXY", "http_proxy"} & set(environment)
    assert (environment["HF_HUB_OFFLINE"], environment["HOME"]) == ("1", "/t")


def test_the_book_lies_where_llama_benchy_looks(tmp_path: Path) -> None:
    gate_benchy.stage_book(tmp_path, WORKLOAD | {"pp": [8192]}, seed=1)
    name = hashlib.md5(gate_benchy.BOOK.encode()).hexdigest()
    text = (tmp_path / ".cache/llama-benchy" / f"{name}.txt").read_text()
    assert len(text.split()) >= 50_000


def test_no_two_runs_share_their_prompts() -> None:
    assert prose(100, 1) == prose(100, 1)
    one, other = set(prose(2000, 1).split(". ")), set(prose(2000, 2).split(". "))
    assert not one & other


def events(path: Path, found: Sequence[dict[str, Any]]) -> Requests:
    path.write_text("".join(json.dumps(event) + "\n" for event in found))
    requests = Requests(path, WORKLOAD)
    requests.read()
    return requests


def asked(request: int) -> dict[str, Any]:
    sizes = {"prompt_size": 512, "response_size": 32, "context_size": 0, "concurrency": 1}
    return {"type": "request_start", "request_id": request, **sizes}


def streamed(request: int, pieces: int = 32, pause_s: float = 0.02) -> list[dict[str, Any]]:
    first = [{"type": "request_first_response", "request_id": request}]
    return first + [{"type": "tokens", "request_id": request, "ts": pause_s * at, "count": 1} for at in range(pieces)]


def got(request: int, tokens: int = 32, error: str = "", prompt: int = 512) -> dict[str, Any]:
    return {"type": "request_end", "request_id": request, "total_tokens": tokens, "error": error,
            "prompt_tokens": prompt}  # fmt: skip


LAST = TOTAL - 1
MOST = [event for request in range(LAST) for event in (asked(request), *streamed(request), got(request))]
WHOLE = [*MOST, asked(LAST), *streamed(LAST), got(LAST)]


def test_a_whole_run_is_believed(tmp_path: Path) -> None:
    requests = events(tmp_path / "events", [{"type": "header"}, *WHOLE, {"type": "bench_complete"}])
    assert requests.faults() == []
    assert (requests.ended, requests.total, requests.step) == (TOTAL, TOTAL, "pp512 tg32 c1")
    assert requests.generated == TOTAL * 32
    assert requests.longest_pause_s() == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("last", "kind", "told"),
    [
        ([asked(LAST), *streamed(LAST)], gate_faults.FAILED, "5 of 6 requests came to an end"),
        ([], gate_faults.FAILED, "5 of 6 requests came to an end"),
        (
            [asked(LAST), got(LAST, 0, "HTTP 500")],
            gate_faults.FAILED,
            "1 of 6 requests failed, the first with: HTTP 500",
        ),
        ([asked(LAST), *streamed(LAST, 3), got(LAST, 3)], gate_faults.TOO_FEW, "3 of the 32 tokens"),
        ([asked(LAST), got(LAST, 0)], gate_faults.NOT_STREAMED, "no piece"),
        ([asked(LAST), *streamed(LAST, 1), got(LAST)], gate_faults.NOT_STREAMED, "32 tokens came in one piece"),
        ([asked(LAST), *streamed(LAST, 0), got(LAST)], gate_faults.EMPTY, "no content"),
        ([asked(LAST), *streamed(LAST), got(LAST, 35)], gate_faults.WRONG_USAGE, "32 pieces counts 35 tokens"),
        ([asked(LAST), *streamed(LAST), got(LAST, 29)], gate_faults.WRONG_USAGE, "32 pieces counts 29 tokens"),
        ([asked(LAST), *streamed(LAST), got(LAST, prompt=1024)], gate_faults.WRONG_USAGE, "1024 prompt tokens"),
        ([asked(LAST), *streamed(LAST, 32, 20.0), got(LAST)], gate_faults.STALLED, "stood still for 20.0 s"),
    ],
)
def test_a_run_with_holes_is_not(tmp_path: Path, last: list[dict[str, Any]], kind: str, told: str) -> None:
    (found,) = events(tmp_path / "events", [*MOST, *last]).faults()
    assert (found["kind"], found["workload"]) == (kind, "benchy")
    assert told in found["told"]


def test_no_request_at_all_is_a_fault(tmp_path: Path) -> None:
    assert [one["kind"] for one in events(tmp_path / "events", [{"type": "header"}]).faults()] == [gate_faults.NONE]


@pytest.mark.parametrize("pieces", [29, 11])
def test_marks_without_text_may_be_missing_and_several_tokens_may_come_at_once(tmp_path: Path, pieces: int) -> None:
    found = [*MOST, asked(LAST), *streamed(LAST, pieces), got(LAST, 29)]
    assert events(tmp_path / "events", found).faults() == []


def test_half_a_line_waits_for_its_rest(tmp_path: Path) -> None:
    path = tmp_path / "events"
    requests = Requests(path, WORKLOAD)
    requests.read()
    line = json.dumps(asked(0))
    path.write_text(line[:20])
    requests.read()
    assert requests.requests == {}
    path.write_text(line + "\n")
    requests.read()
    assert requests.requests[0].asked == 32


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Warmup failed: HTTP 500: out of order", gate_faults.FAILED),
        ("Coherence test FAILED: Expected 'Paris'. Got: ...", gate_faults.WRONG),
    ],
)
def test_a_client_that_gives_up_before_it_measures_names_the_servers_fault(line: str, kind: str) -> None:
    assert gate_benchy.ended_badly(["llama-benchy (0.4.0)", line], 1)["kind"] == kind
    with pytest.raises(SystemExit, match="llama-benchy ended with 2"):
        gate_benchy.ended_badly(["Traceback"], 2)


def part(*values: float, runs: int = 2) -> dict[str, Any]:
    return {"report": json.loads(report(cell([1000.0] * len(values), list(values)))), "runs": runs, "faults": []}


def test_more_runs_are_added_and_stand_as_one_report() -> None:
    given = options("--append")
    first = {"invocation": "i", "started": "t0", "samples": {"power_w": [1.0]}, "parts": {"benchy": part(60.0, 62.0)}}
    once = gate_result.document(given, first, None)
    more = {"invocation": "i", "started": "t1", "samples": {"power_w": [2.0]}, "parts": {"benchy": part(64.0, 66.0)}}
    twice = gate_result.document(given, more, once)
    assert (twice["started"], twice["workload"]["runs"], len(twice["parts"]["benchy"])) == ("t0", 4, 2)
    assert twice["samples"] == {"power_w": [1.0, 2.0]}
    (whole,) = parse_benchy_json(json.dumps(twice["report"])).runs
    assert whole.tg is not None
    assert (whole.tg.values, whole.tg.mean) == ((60.0, 62.0, 64.0, 66.0), 63.0)
    lacking = {**more, "parts": {"benchy": {**part(64.0, 66.0), "report": None}}}
    assert gate_result.document(given, lacking, once)["report"] is None


def test_the_former_result_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "r1.json"
    gate_result.set_aside(path)
    path.write_text('{"finished": "2026-11-30T04:45:19Z", "release": "r1"}')
    gate_result.set_aside(path)
    assert [one.name for one in (tmp_path / "former").iterdir()] == ["r1.2026-11-30T044519Z.json"]


def test_sampling_goes_on_once_a_second_and_ends() -> None:
    taken = iter(range(1000))
    with Sampling(lambda: {"power_w": float(next(taken)), "clock_mhz": None}, interval_s=0.01) as sampling:
        while len(sampling.samples) < 3:
            pass
    count = len(sampling.samples)
    assert sampling.series()["power_w"] == [float(number) for number in range(count)]
    assert set(sampling.series()["clock_mhz"]) == {None}


def test_a_key_is_handed_over_in_memory_only(tmp_path: Path) -> None:
    secrets = tmp_path / "secret.env"
    secrets.write_text("VLLM_API_KEY=a=b\n")
    assert benchy.key_of(secrets, "VLLM_API_KEY") == "a=b"
    with pytest.raises(SystemExit, match="has no OTHER"):
        benchy.key_of(secrets, "OTHER")


def nvidia_smi(monkeypatch: pytest.MonkeyPatch, output: str, code: int = 0) -> None:
    done = subprocess.CompletedProcess([], code, stdout=output)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)


def test_samples_of_a_gpu_that_does_not_tell_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(monkeypatch, "2418, [N/A], 43, 96\n")
    assert gpu_sample.sample() == {
        "clock_mhz": 2418.0,
        "power_w": None,
        "temperature_c": 43.0,
        "utilisation_percent": 96.0,
    }


@pytest.mark.parametrize(("output", "code"), [("", 0), ("Failed to initialize NVML", 9), ("a, b", 0)])
def test_no_samples_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch, output: str, code: int) -> None:
    nvidia_smi(monkeypatch, output, code)
    assert gpu_sample.sample() is None


def test_the_series_is_summed_up() -> None:
    assert gate_state.summary({"clock_mhz": [500.0, 2400.0, 2418.0], "power_w": [None, None, None]}) == {
        "clock_mhz": {"min": 500.0, "median": 2400.0, "max": 2418.0}
    }
