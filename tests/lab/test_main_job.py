"""From a bare machine to a server that is measured, and a second run that has nothing to do."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from modules.facts.parse.vllm_bench import parse_serve_result
from modules.lab.layout import ROOT
from modules.lab.model.recital import TEXT
from modules.release.layout import gate_result_file
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = pytest.mark.lab
HOST = "spark-1"
STAGES = re.findall(r"^(\w+)\(plan=plan\)", (ROOT / "deploys" / "spark.py").read_text(), re.MULTILINE)
QUESTION: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Tell me about sparks."}]


@pytest.fixture
def table(lab: Lab, main_fleet: Path, first_run: Run) -> Run:
    """What is shown at the end of `make demo`."""
    return lab.tinderbox([sys.executable, "-m", "modules.reporting.table"], fleet=main_fleet)


@pytest.fixture
def gate_result(lab: Lab, served: Served) -> str:
    """Path of the measurement of what serves."""
    return gate_result_file(served.plan.name, served.release())


@pytest.fixture(scope="module")
def settled(lab: Lab, main_fleet: Path, first_run: Run) -> None:
    """Other tests have left images on the host, which the next run takes away; then there is nothing more to do."""
    run = lab.converge(fleet=main_fleet)
    assert run.rc == 0, run.text


def test_the_table_tells_what_was_measured_and_that_the_gpu_is_simulated(table: Run) -> None:
    assert table.rc == 0, table.text
    (row,) = [line for line in table.stdout.splitlines() if line.split()[:1] == [HOST]]
    assert "PASS" in row
    assert "(simulated)" in table.stdout
    prompt, decode = re.findall(r"(\d+\.\d) ± \d+\.\d", row)
    assert float(prompt) > 0
    assert float(decode) > 0
    for metric in ("pp2048 c1", "tg128@pp2048 c1"):
        assert metric in table.stdout


def test_the_line_to_try_works_word_for_word(table: Run, lab: Lab) -> None:
    line = table.stdout.split("Try it:\n")[1].splitlines()[0]
    assert "curl" in line
    run = lab.tinderbox(["bash", "-c", line])
    assert run.rc == 0, run.text
    # What was said, and not the document that it came in.
    assert run.stdout.strip()
    assert not run.stdout.startswith("{")


@pytest.mark.usefixtures("settled")
def test_a_second_run_has_nothing_to_do_and_measures_nothing(lab: Lab, main_fleet: Path, gate_result: str) -> None:
    measured, asked = lab.ssh(HOST, f"stat -c '%i %Y' {gate_result}").stdout, len(lab.requests())
    run = lab.pyinfra("deploys/spark.py", "-y", "--json", fleet=main_fleet)
    assert run.rc == 0, run.text
    results = run.json["results"]
    totals = results["totals"]
    assert (totals["success"], totals["error"], totals["no_change"]) == (0, 0, totals["hosts"]), run.text
    assert results["failed_hosts"] == []
    assert len(results["operations"]) >= len(STAGES)
    assert lab.ssh(HOST, f"stat -c '%i %Y' {gate_result}").stdout == measured
    assert lab.requests(asked, HOST) == []


@pytest.mark.usefixtures("settled")
def test_a_dry_run_shows_no_change(lab: Lab, main_fleet: Path) -> None:
    run = lab.pyinfra("deploys/spark.py", "--dry", "--json", fleet=main_fleet)
    assert run.rc == 0, run.text
    plan = run.json["plan"]
    assert len(plan) >= len(STAGES)
    for operation in plan:
        assert operation["hosts_with_change"] == [], operation
        assert operation["hosts_with_conditional_change"] == [], operation
    drift = lab.converge("--dry", fleet=main_fleet)
    assert drift.rc == 0, drift.text


@pytest.mark.usefixtures("settled")
def test_a_second_run_takes_few_round_trips(lab: Lab, main_fleet: Path, tmp_path: Path) -> None:
    counted = tmp_path / "round-trips"
    words = ["env", f"ROUND_TRIPS={counted}", sys.executable, "-m", "benchmarks.counted_pyinfra"]
    run = lab.tinderbox([*words, "--yes", "inventory.py", "deploys/spark.py"], fleet=main_fleet)
    assert run.rc == 0, run.text
    # Preflight, the hold, and one survey of all that the stages ask.
    assert int(counted.read_text()) == 3, run.text


# Stage gate alone is there to be asked for a measurement (tests/lab/test_gate_workloads.py); `agent` is the first half
# of stage gateway (deploys/gateway.py), which spark.py runs before the engine.
@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage not in {"gate", "agent"}])
def test_a_stage_alone_has_nothing_to_do(lab: Lab, main_fleet: Path, stage: str) -> None:
    run = lab.converge(f"deploys/{stage}.py", fleet=main_fleet)
    assert run.rc == 0, run.text
    assert "no change on any host" in run.stderr


def test_an_openai_client_gets_text_a_stream_and_the_models_name(served: Served) -> None:
    model = served.plan.model.served_as
    with served.tunnel() as url, OpenAI(base_url=url, api_key="none", max_retries=0, timeout=120) as client:
        assert model in [each.id for each in client.models.list()]
        chat = client.chat.completions.create(model=model, messages=QUESTION, max_tokens=64)
        text = chat.choices[0].message.content
        assert text
        assert text.startswith("".join(TEXT)), text
        stream = client.chat.completions.create(model=model, messages=QUESTION, max_tokens=64, stream=True)
        deltas = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
    chunks = [delta for delta in deltas if delta]
    assert len(chunks) > 4
    assert "".join(chunks) == text


def test_vllm_bench_serve_measures_it(served: Served, lab: Lab) -> None:
    inspected = f"sudo docker inspect -f '{{{{json .Config.Cmd}}}}' {served.container}"
    snapshot = lab.ssh(HOST, inspected).json[2]
    run = lab.ssh(
        HOST,
        f"sudo docker exec {served.container} vllm bench serve --backend vllm --endpoint /v1/completions"
        f" --base-url http://127.0.0.1:{served.plan.service.port} --model {snapshot}"
        f" --served-model-name {served.plan.model.served_as} --dataset-name random"
        " --random-input-len 64 --random-output-len 16 --num-prompts 4 --ignore-eos",
    )
    result = parse_serve_result(run.stdout)
    assert (result.completed, result.failed, result.output_tokens) == (4, 0, 4 * 16)
    assert result.output_throughput > 0
    assert result.latency_ms["ttft"]["mean"] > 0
