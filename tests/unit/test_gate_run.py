"""The measurement on the host: what llama-benchy is told, and when its figures are believed."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import benchy, gate_state, gpu_sample, run_gate
from modules.hostside.benchy_events import Requests
from modules.hostside.prompts import prose

WORKLOAD: dict[str, Any] = {
    "pp": [512],
    "tg": [32],
    "depth": [0],
    "concurrency": [1, 2],
    "runs": 2,
    "time_limit_s": 300,
    "coherence": True,
    "latency_mode": "none",
}
TOTAL = 2 + 4


def options(*extra: str) -> Any:
    words = ["--service", "gpt-oss", "--release", "r1", "--url", "http://127.0.0.1:8000", "--model", "o/m"]
    words += ["--served-as", "m", "--workload", json.dumps(WORKLOAD), "--workload-id", "w", "--tokenizer", "/hub/m"]
    return run_gate.parsed([*words, *extra])


def arguments(workload: dict[str, Any]) -> list[str]:
    return run_gate.benchy_arguments(options(), workload, Path("/t/report.json"), Path("/t/events.jsonl"))


def test_the_matrix_is_told_whole() -> None:
    words = " ".join(arguments(WORKLOAD))
    assert "--base-url http://127.0.0.1:8000/v1 --model o/m --served-model-name m --tokenizer /hub/m" in words
    assert "--pp 512 --tg 32 --depth 0 --concurrency 1 2 --runs 2 --exact-tg" in words
    assert "--latency-mode none" in words


def test_coherence_is_skipped_only_where_the_gate_says_so() -> None:
    assert "--skip-coherence" not in arguments(WORKLOAD)
    assert "--skip-coherence" in arguments(WORKLOAD | {"coherence": False})


def test_nothing_goes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    environment = run_gate.environment(Path("/t"))
    assert not {"HTTPS_PROXY", "http_proxy"} & set(environment)
    assert (environment["HF_HUB_OFFLINE"], environment["HOME"]) == ("1", "/t")


def test_the_book_lies_where_llama_benchy_looks(tmp_path: Path) -> None:
    run_gate.stage_book(tmp_path, WORKLOAD | {"pp": [8192]}, seed=1)
    name = hashlib.md5(run_gate.BOOK.encode()).hexdigest()
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


def got(request: int, tokens: int = 32, error: str = "") -> dict[str, Any]:
    return {"type": "request_end", "request_id": request, "total_tokens": tokens, "error": error}


WHOLE = [event for request in range(TOTAL) for event in (asked(request), got(request))]


def test_a_whole_run_is_believed(tmp_path: Path) -> None:
    requests = events(tmp_path / "events", [{"type": "header"}, *WHOLE, {"type": "bench_complete"}])
    assert requests.complaint() is None
    assert (len(requests.got), requests.total, requests.step) == (TOTAL, TOTAL, "pp512 tg32 c1")


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (WHOLE[:-1], "5 of 6 requests"),
        ([*WHOLE[:-1], got(TOTAL - 1, error="HTTP 500")], "HTTP 500"),
        ([*WHOLE[:-1], got(TOTAL - 1, tokens=3)], "3 of the 32 tokens"),
        ([*WHOLE[:-1], got(TOTAL - 1, tokens=0)], "0 of the 32 tokens"),
    ],
)
def test_a_run_with_holes_is_not(tmp_path: Path, found: list[dict[str, Any]], told: str) -> None:
    assert told in (events(tmp_path / "events", found).complaint() or "")


def test_marks_without_text_may_be_missing(tmp_path: Path) -> None:
    found = [*WHOLE[:-1], got(TOTAL - 1, tokens=29)]
    assert events(tmp_path / "events", found).complaint() is None


def test_half_a_line_waits_for_its_rest(tmp_path: Path) -> None:
    path = tmp_path / "events"
    requests = Requests(path, WORKLOAD)
    requests.read()
    line = json.dumps(asked(0))
    path.write_text(line[:20])
    requests.read()
    assert requests.asked == {}
    path.write_text(line + "\n")
    requests.read()
    assert requests.asked == {0: 32}


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
