"""Results of benchmarks. An empty cell or a null was not measured: it is None, never 0 and never a pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.facts.parse.decode_bench import DecodeRun, parse_decode_bench
from modules.facts.parse.errors import ParseError
from modules.facts.parse.llama_bench import parse_llama_bench
from modules.facts.parse.llama_benchy import Metric, parse_benchy_json
from modules.facts.parse.llama_benchy_table import parse_benchy_table
from modules.facts.parse.markdown import Measured
from modules.facts.parse.vllm_bench import parse_serve_result, parse_serve_results
from modules.facts.parse.vllm_bench_json import parse_serve_json

SAMPLES = Path(__file__).parents[1] / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_a_result_block_with_rows_of_other_versions_and_flags() -> None:
    result = parse_serve_result(sample("vllm-bench-serve.txt"))
    assert (result.completed, result.failed, result.rate, result.max_concurrency) == (64, 1, None, 8)
    assert (result.duration, result.input_tokens, result.output_tokens) == (120.5, 65536, 8192)
    assert (result.output_throughput, result.peak_output_throughput, result.total_throughput) == (67.98, 96.0, 611.85)
    assert result.latency_ms == {"ttft": {"mean": 801.2, "median": 790.1, "p99": 1500.75, "p99.9": 1601.0}}
    assert result.other == {"Acceptance rate (%)": 71.25}


def test_a_progress_bar_of_carriage_returns_may_stand_before_the_block() -> None:
    bar = "\r".join(f" {done}%|███| {done}/64 [00:01<00:02, 1.00it/s]" for done in range(100)) + "\n"
    assert parse_serve_result(bar + sample("vllm-bench-serve.txt")).completed == 64


def test_of_several_blocks_none_wins_silently() -> None:
    text = sample("vllm-bench-serve.txt") * 2
    assert len(parse_serve_results(text)) == 2
    with pytest.raises(ParseError, match="expected one result block, got 2"):
        parse_serve_result(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no result block"),
        (sample("vllm-bench-serve.txt")[:-60], "cut off"),
        (
            sample("vllm-bench-serve.txt")[:-60] + "\n" + "============ Serving Benchmark Result ============\n",
            "cut off",
        ),
        (sample("vllm-bench-serve.txt").replace("Benchmark duration (s):                  120.50", ""), "duration"),
        (sample("vllm-bench-serve.txt").replace("120.50", "nan"), "expected a number"),
        (
            sample("vllm-bench-serve.txt").replace("Median TTFT (ms):                        790.10", "oops"),
            "name: value",
        ),
    ],
)
def test_a_block_that_is_cut_off_or_broken_is_an_error(text: str, what: str) -> None:
    with pytest.raises(ParseError, match=what.replace("(", r"\(")):
        parse_serve_results(text)


def test_a_result_file_with_other_percentiles() -> None:
    result = parse_serve_json(sample("vllm-bench-serve.json"))
    assert (result.completed, result.failed, result.rate, result.max_concurrency) == (64, None, None, 8)
    assert (result.output_throughput, result.peak_output_throughput) == (67.98, None)
    assert result.latency_ms == {"ttft": {"mean": 801.2, "p99.9": 1601.0}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        sample("vllm-bench-serve.json")[:-20],
        sample("vllm-bench-serve.json").replace('"duration": 120.5, ', ""),
        sample("vllm-bench-serve.json").replace("120.5", "NaN"),
        sample("vllm-bench-serve.json").replace('"completed": 64', '"completed": 64.5'),
        sample("vllm-bench-serve.json").replace('"completed": 64', '"completed": true'),
    ],
)
def test_a_result_file_that_is_broken_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_serve_json(text)


def test_a_report_with_what_was_not_measured() -> None:
    report = parse_benchy_json(sample("llama-benchy.json"))
    assert (report.version, report.latency_mode, report.latency_ms) == ("0.4.0", "generation", 80.5)
    first, second = report.runs
    assert (first.prompt, first.response, first.depth, first.concurrency) == (2048, 128, 0, 1)
    assert first.pp == Metric(4700.5, 10.0, (4690.5, 4710.5))
    assert first.tg == Metric(58.5, 0.5, (58.0, 59.0))
    assert first.e2e_ttft_ms == Metric(482.0, 3.5, (478.5, 485.5))
    assert (second.depth, second.concurrency, second.context_phase) == (4096, 2, True)
    assert (second.pp, second.tg, second.ttfr_ms) == (None, None, None)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"benchmarks": []}, "no benchmark"),
        ({"benchmarks": None}, "expected an object"),
        ({"benchmarks": [3]}, r"benchmarks\[0\] is not an object"),
        ({"latency_ms": "1"}, "latency_ms is not a finite number"),
    ],
)
def test_a_report_that_is_broken_is_an_error(change: dict[str, object], what: str) -> None:
    document = json.loads(sample("llama-benchy.json"))
    with pytest.raises(ParseError, match=what):
        parse_benchy_json(json.dumps(document | change))


@pytest.mark.parametrize(
    ("key", "value"),
    [("tg_throughput", 58.5), ("tg_throughput", {"mean": 1}), ("prompt_size", -1), ("concurrency", "1")],
)
def test_a_run_that_is_broken_is_an_error(key: str, value: object) -> None:
    document = json.loads(sample("llama-benchy.json"))
    document["benchmarks"][0][key] = value
    with pytest.raises(ParseError):
        parse_benchy_json(json.dumps(document))


def test_a_mean_that_is_no_number_is_an_error_and_a_missing_key_too() -> None:
    with pytest.raises(ParseError, match="not a finite number"):
        parse_benchy_json(sample("llama-benchy.json").replace("58.5", "NaN"))
    with pytest.raises(ParseError, match="no model"):
        parse_benchy_json(sample("llama-benchy.json").replace('"model"', '"modell"'))
    with pytest.raises(ParseError, match="not JSON"):
        parse_benchy_json(sample("llama-benchy.json")[:300])


def test_a_table_under_a_json_name_is_named_as_such() -> None:
    table = sample("llama-benchy-three-layouts.md").split("\n\n")[1]
    with pytest.raises(ParseError, match="a markdown table, not JSON"):
        parse_benchy_json(table)
    assert len(parse_benchy_table(table).rows) == 3


def test_all_three_layouts_of_the_table() -> None:
    tables = parse_benchy_table(sample("llama-benchy-three-layouts.md"))
    assert (tables.version, tables.latency_ms, tables.fallback_tokenizer) == ("0.3.1", 1.84, "gpt2")
    with_concurrency, one_stream, old = tables.rows[:3], tables.rows[3:5], tables.rows[5:]
    assert with_concurrency[1].concurrency == 4
    assert with_concurrency[1].total == Measured(130.25, 1.5)
    assert with_concurrency[1].request == Measured(32.56, 0.4)
    assert with_concurrency[1].peak_request == Measured(35.0, 0.5)
    assert (one_stream[0].depth, one_stream[0].concurrency, one_stream[0].request) == (8192, 1, None)
    assert one_stream[1].peak == Measured(57.0, 0.0)
    assert (old[0].kind, old[0].size, old[0].total) == ("pp", 512, Measured(2115.76, 32.92))
    assert old[0].e2e_ttft_ms == Measured(295.25, 4.26)
    assert (old[1].total, old[1].peak) == (Measured(59.36, 0.51), None)


def test_an_empty_cell_was_not_measured() -> None:
    empty = parse_benchy_table(sample("llama-benchy-three-layouts.md")).rows[2]
    assert (empty.kind, empty.context_phase, empty.size, empty.depth) == ("pp", True, None, 4096)
    assert (empty.total, empty.request, empty.peak, empty.ttfr_ms) == (None, None, None, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No results collected. Check if the model is generating tokens.\n",
        "| model | test | t/s |\n|:--|--:|--:|\n| a | tg32 |\n",
        "| model | test | t/s |\n|:--|--:|--:|\n| a | tg32 | 59.36\n",
        "| model | test | t/s |\n|:--|--:|--:|\n| a | tg32 | fast |\n",
        "| model | test | t/s |\n|:--|--:|--:|\n| a | warmup | 59.36 ± 0.51 |\n",
        "| model | test | speed |\n|:--|--:|--:|\n| a | tg32 | 59.36 ± 0.51 |\n",
    ],
)
def test_a_table_that_is_cut_off_or_unknown_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_benchy_table(text)


def test_llama_bench_with_a_further_column() -> None:
    bench = parse_llama_bench(sample("llama-bench.txt"))
    assert bench.devices == (("NVIDIA GB10", "12.1"),)
    assert bench.build == "0a1b2c3d4"
    assert [(row.test, row.speed) for row in bench.rows] == [
        ("pp2048", Measured(1937.5, 12.0)),
        ("tg32 @ d4096", Measured(59.0, 0.1)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        sample("llama-bench.txt").partition("build:")[0],
        "main: error: failed to load model 'x.gguf'\nbuild: 0a1b2c3d4 (9600)\n",
        "build: 0a1b2c3d4 (9600)\n",
    ],
)
def test_a_llama_bench_that_did_not_finish_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_llama_bench(text)


def test_a_decode_bench_and_one_that_did_not_finish() -> None:
    run = "run 1: TTFT 0.31s, decode 57.9 tok/s (512 tokens by usage, total 9.2s)\n"
    bench = parse_decode_bench(run + "WARM AVG: TTFT 0.10s, decode 58.0 tok/s over 3 runs\n")
    assert bench.runs == (DecodeRun(0.31, 57.9, 512, 9.2),)
    assert (bench.warm_ttft, bench.warm_speed, bench.warm_runs) == (0.1, 58.0, 3)
    with pytest.raises(ParseError):
        parse_decode_bench(run)
