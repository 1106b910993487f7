"""The published outputs, in the forms in which programs print them, against the gates of their own baselines."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.facts.parse.llama_benchy_table import parse_benchy_table
from modules.facts.parse.markdown import Measured
from modules.facts.parse.vllm_bench import ServeResult, parse_serve_result
from modules.facts.parse.vllm_bench_json import parse_serve_json
from modules.gating import Verdict
from modules.gating.decision import decide
from modules.gating.metrics import Measurement
from modules.gating.parts import measurement_of_parts
from modules.gating.published import measurement_of_serving, measurement_of_table, runs_of
from modules.spec.gate import Gate, Threshold
from modules.spec.workload import RandomWorkload

CATALOG = load_catalog()
FIGURES = CATALOG.baselines["vllm-mxfp4-many-chunks"].figures
# Baseline A: prompt → prefill with tg32 and with tg128, decode of both, time to the first answer.
A = (
    (512, "2115.76 ± 32.92", "2097.99 ± 27.01", "59.36 ± 0.51", "59.70 ± 0.05", "243.28 ± 3.69"),
    (2048, "4771.75 ± 39.70", "4716.49 ± 61.54", "58.64 ± 0.41", "59.22 ± 0.07", "430.45 ± 3.58"),
    (8192, "6626.55 ± 9.41", "6621.92 ± 15.85", "56.77 ± 0.49", "57.27 ± 0.13", "1237.47 ± 1.75"),
    (16384, "5920.72 ± 15.52", "5900.69 ± 9.37", "54.82 ± 0.39", "55.12 ± 0.08", "2768.48 ± 7.25"),
)


def scaled(text: str, factor: float) -> str:
    return re.sub(r"^\d+\.\d+", lambda found: f"{float(found[0]) * factor:.2f}", text)


def table_a(factor: float) -> str:
    """As llama-benchy 0.1.1 prints it."""
    rows = ["| model | test | t/s | ttfr (ms) | est_ppt (ms) | e2e_ttft (ms) |", "|:---|---:|---:|---:|---:|---:|"]
    for prompt, with32, with128, tg32, tg128, ttfr in A:
        for prefill, size, decode in ((with32, 32, tg32), (with128, 128, tg128)):
            rows.append(f"| gpt-oss-120b | pp{prompt} | {scaled(prefill, factor)} | {ttfr} | {ttfr} | {ttfr} |")
            rows.append(f"| gpt-oss-120b | tg{size} | {scaled(decode, factor)} | | | |")
    return "\n".join(rows)


def block_b(factor: float, failed: int = 0) -> str:
    """As `vllm bench serve` prints it."""
    latency = "\n".join(
        f"{row} {kind.upper()} (ms): {FIGURES[f'random {row.lower()} {kind}'].value / factor:.2f}"
        for kind in ("ttft", "tpot", "itl")
        for row in ("Mean", "Median", "P99")
    )
    return f"""============ Serving Benchmark Result ============
Successful requests:                     {1024 - failed}
Failed requests:                         {failed}
Benchmark duration (s):                  {296.73 / factor:.2f}
Total input tokens:                      1048576
Total generated tokens:                  131072
Request throughput (req/s):              {3.45 * factor:.2f}
Output token throughput (tok/s):         {441.71 * factor:.2f}
Peak output token throughput (tok/s):    3072.00
Total Token throughput (tok/s):          {3975.43 * factor:.2f}
---------------Time to First Token----------------
{latency}
==================================================
"""


def json_b(factor: float, failed: int = 0) -> str:
    """As `vllm bench serve --save-result` writes it."""
    document: dict[str, float] = {
        "completed": 1024 - failed, "failed": failed, "duration": 296.73 / factor, "total_input_tokens": 1048576,
        "total_output_tokens": 131072, "request_throughput": 3.45 * factor, "output_throughput": 441.71 * factor,
        "total_token_throughput": 3975.43 * factor, "max_output_tokens_per_s": 3072.0,
    }  # fmt: skip
    for kind in ("ttft", "tpot", "itl"):
        for row in ("mean", "median", "p99"):
            document[f"{row}_{kind}_ms"] = FIGURES[f"random {row} {kind}"].value / factor
    return json.dumps(document)


def judged(gate: str, measured: Measurement) -> Verdict:
    wanted = CATALOG.gates[gate]
    names = [name for name in wanted.thresholds if name in measured.metrics]
    assert names == list(wanted.thresholds)
    found = decide(wanted, measured)
    assert found.settled
    return found.judgement.verdict


ALTERED = [(1.0, Verdict.PASS), (0.9, Verdict.WARN), (0.55, Verdict.FAIL)]


@pytest.mark.parametrize(("factor", "wanted"), ALTERED)
def test_baseline_a_as_a_table(factor: float, wanted: Verdict) -> None:
    measured = measurement_of_table(parse_benchy_table(table_a(factor)), runs=5)
    assert judged("vllm-mxfp4-prompt-sizes", measured) is wanted
    assert measured.metrics["pp2048 c1"].mean == pytest.approx(4716.49 * factor, abs=0.01)


@pytest.mark.parametrize(("factor", "wanted"), ALTERED)
@pytest.mark.parametrize("form", ["block", "json"])
def test_baseline_b_as_a_block_and_as_json(form: str, factor: float, wanted: Verdict) -> None:
    result = parse_serve_result(block_b(factor)) if form == "block" else parse_serve_json(json_b(factor))
    assert judged("vllm-mxfp4-many-chunks", measurement_of_serving("random", result)) is wanted


@pytest.mark.parametrize("form", ["block", "json"])
def test_one_failed_request_fails_whatever_the_speed(form: str) -> None:
    result = parse_serve_result(block_b(1.0, 1)) if form == "block" else parse_serve_json(json_b(1.0, 1))
    measured = measurement_of_serving("random", result)
    found = decide(CATALOG.gates["vllm-mxfp4-many-chunks"], measured)
    assert found.judgement.verdict is Verdict.FAIL
    assert "1 of 1024 requests failed" in found.judgement.text()


def test_no_request_at_all_fails() -> None:
    nothing: ServeResult = replace(parse_serve_result(block_b(1.0)), completed=0, failed=0)
    found = decide(CATALOG.gates["vllm-mxfp4-many-chunks"], measurement_of_serving("random", nothing))
    assert found.judgement.verdict is Verdict.FAIL


def test_a_tables_spread_is_kept() -> None:
    metric = runs_of(Measured(59.22, 0.07), 5)
    assert len(metric.values) == 5
    assert sum(metric.values) / 5 == pytest.approx(59.22)
    assert (sum((value - 59.22) ** 2 for value in metric.values) / 5) ** 0.5 == pytest.approx(0.07)


GATE = Gate(
    random=RandomWorkload(prompts=8, runs=2),
    cold_start=True,
    thresholds={"random output throughput": Threshold(min=100), "cold start weights loading": Threshold(max=400)},
)
START = {"seconds": {"launch_to_ready": 443.0, "weights_loading": 375.0, "kv_cache": 1.0, "graph_capture": 32.7}}


def served(*throughputs: float | None) -> dict[str, Any]:
    return {"results": [{"output_throughput": value} for value in throughputs], "runs": len(throughputs)}


def test_what_hosts_keep_becomes_metrics() -> None:
    parts: dict[str, Any] = {"random": [served(200.0, 202.0), served(199.0, 201.0)], "cold_start": [START]}
    found = measurement_of_parts(GATE, parts)
    assert found.metrics["random output throughput"].values == (200.0, 202.0, 199.0, 201.0)
    assert found.metrics["cold start weights loading"].values == (375.0,)
    assert found.metrics["cold start graph capture"].mean == 32.7
    assert [one.workload for one in found.faults] == ["benchy"]


@pytest.mark.parametrize("value", [None, float("nan")])
def test_a_run_without_a_figure_is_not_measured(value: float | None) -> None:
    parts: dict[str, Any] = {"benchy": [{}], "random": [served(200.0, value)], "cold_start": [START]}
    found = decide(GATE, measurement_of_parts(GATE, parts))
    assert found.judgement.verdict is Verdict.FAIL
    assert "not measured" in found.judgement.text()


def test_one_figure_without_a_spread_is_judged_as_it_is() -> None:
    parts: dict[str, Any] = {"benchy": [{}], "random": [served(200.0, 201.0)], "cold_start": [START]}
    found = decide(GATE, measurement_of_parts(GATE, parts))
    assert (found.judgement.verdict, found.settled) == (Verdict.PASS, True)
    slow = {"seconds": {**START["seconds"], "weights_loading": 401.0}}
    found = decide(GATE, measurement_of_parts(GATE, {**parts, "cold_start": [slow]}))
    assert found.judgement.verdict is Verdict.FAIL
    assert "above 400" in found.judgement.text()
