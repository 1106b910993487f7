"""What nvidia-smi says, and samples over time."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.facts.parse.errors import ParseError
from modules.facts.parse.nvidia_smi import ComputeApp, Gpu, parse_compute_apps, parse_gpus
from modules.facts.parse.nvidia_smi_table import parse_table
from modules.facts.parse.telemetry import Sample, parse_runner_log, parse_telemetry

SAMPLES = Path(__file__).parents[1] / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_a_gpu_with_everything_it_can_tell() -> None:
    assert parse_gpus(sample("nvidia-smi-gpu.csv")) == (
        Gpu(
            name="NVIDIA GB10",
            driver="580.142",
            pstate="P0",
            sm_mhz=2411.0,
            max_sm_mhz=3003.0,
            power_w=61.48,
            temperature_c=71.0,
            utilization_pct=96.0,
            reasons=("software power cap", "software thermal slowdown"),
        ),
    )


def test_older_field_names_and_figures_that_the_gpu_does_not_tell() -> None:
    (gpu,) = parse_gpus(sample("nvidia-smi-gpu-old-names.csv"))
    assert gpu == Gpu("NVIDIA GB10", "580.95.05", sm_mhz=611.0, utilization_pct=95.0)
    assert gpu.driver_major == 580


def test_a_containers_banner_may_stand_before_the_header() -> None:
    assert parse_gpus(sample("ngc-banner.txt") + sample("nvidia-smi-gpu.csv"))[0].power_w == 61.48


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no CSV header"),
        ("NVIDIA GB10, 580.142\n", "no CSV header"),
        ("name, driver_version\nNVIDIA GB10\n", "expected 2 fields, got 1"),
        ("name, driver_version\nNVIDIA GB10, twelve\n", "expected a driver version"),
        ("name, driver_version, power.draw [W]\nNVIDIA GB10, 580.142, 12 W 3\n", "expected a number"),
        ("name, driver_version, power.draw [W]\nNVIDIA GB10, 580.142, [Unknown Error]\n", "does not answer"),
        ("name, driver_version, clocks_event_reasons.active\nNVIDIA GB10, 580.142, 24\n", "mask"),
        ("Failed to initialize NVML: Driver/library version mismatch\n", "could not answer"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", "could not answer"),
        ("No devices were found\n", "could not answer"),
    ],
)
def test_a_query_without_a_good_answer_is_an_error(text: str, what: str) -> None:
    with pytest.raises(ParseError, match=what):
        parse_gpus(text)


def test_an_error_says_which_line_holds_what() -> None:
    with pytest.raises(ParseError) as caught:
        parse_gpus("name, driver_version\nNVIDIA GB10, 580.142\nNVIDIA GB10\n")
    assert (caught.value.program, caught.value.line, caught.value.text) == ("nvidia-smi", 3, "NVIDIA GB10")
    assert str(caught.value) == "nvidia-smi: line 3: expected 2 fields, got 1: 'NVIDIA GB10'"


def test_compute_apps_with_a_comma_in_a_name_and_with_unknown_memory() -> None:
    assert parse_compute_apps(sample("nvidia-smi-apps.csv")) == (
        ComputeApp(4127, "VLLM::EngineCore", 91204),
        ComputeApp(5188, "/opt/studio/bin/render, --scene, two", 512),
        ComputeApp(6020, "python3", None),
    )


def test_no_compute_app_is_a_header_alone() -> None:
    assert parse_compute_apps("pid, process_name, used_gpu_memory [MiB]\n") == ()
    with pytest.raises(ParseError):
        parse_compute_apps("")


def test_a_table_with_cut_names_and_a_process_of_both_kinds() -> None:
    table = parse_table(sample("nvidia-smi-table.txt"))
    assert (table.driver, table.cuda, table.forward_compatibility) == ("580.178.04", "13.0", None)
    (gpu,) = table.gpus
    assert (gpu.name, gpu.persistence, gpu.bus, gpu.pstate) == ("NVIDIA GB10", True, "0000000F:01:00.0", "P0")
    assert (gpu.temperature_c, gpu.power_w, gpu.utilization_pct, gpu.memory) == (68, 47, 96, None)
    assert [(one.pid, one.kind, one.name, one.memory_mib) for one in table.processes] == [
        (2210, "G", "/usr/lib/xorg/Xorg", 38),
        (88214, "C+G", "VLLM::EngineCor", 70112),
        (90001, "C", "...ra/bin/llama-server", None),
    ]


def test_a_table_after_a_banner_tells_of_forward_compatibility() -> None:
    table = parse_table(sample("ngc-banner.txt") + sample("nvidia-smi-table.txt"))
    assert table.forward_compatibility == "13.2"
    assert len(table.processes) == 3


@pytest.mark.parametrize("lines", [3, 9, 12, 14, 18, 19, 21])
def test_a_table_that_is_cut_off_is_an_error(lines: int) -> None:
    text = "\n".join(sample("nvidia-smi-table.txt").splitlines()[:lines])
    with pytest.raises(ParseError):
        parse_table(text)


def test_a_sampler_with_a_further_column() -> None:
    text = "elapsed_s,power_w,temp_c,sm_mhz,gpu_util,fan\n10,40.5,57,2489,96,0\n20,99.9,80,2411,96,0\n"
    assert parse_telemetry(text)[1] == Sample(20.0, 99.9, 80.0, 2411.0, 96.0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "elapsed_s,power_w\n10,40\n",
        "elapsed_s,power_w,temp_c,sm_mhz,gpu_util\n",
        "elapsed_s,power_w,temp_c,sm_mhz,gpu_util\n10,40.5,57\n",
    ],
)
def test_a_samplers_file_that_is_cut_off_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_telemetry(text)


def test_heartbeats_by_test() -> None:
    text = (
        "[09:00:00] ── START 01 ──\n"
        "[09:01:00]     ... 01 running: 60s, GPU 96%, 41.88W, 64C, 2476MHz\n"
        "[09:02:00] ── END 01 (120s) ──\n"
        "[09:03:00]     ... 02 running: 60s, GPU 96%, 100.08W, 82C, 2424MHz\n"
    )
    log = parse_runner_log(text)
    assert log.seconds == {"01": 120}
    assert log.samples["02"] == (Sample(60.0, 100.08, 82.0, 2424.0, 96.0),)
    with pytest.raises(ParseError):
        parse_runner_log("[09:00:00] ── START 01 ──\n")
