"""From a gathered document to findings: weighing, order, gaps, and what is in no catalog."""

from __future__ import annotations

from typing import Any

from modules.catalog import load_catalog
from modules.diagnosis import Bundle, Log, bundle_of, diagnose, report
from modules.spec.signature import Signature
from tests.unit.failure_logs import CORE_ENDED, EARLYOOM, KERNEL, STORIES, VLLM_HEAD, VLLM_LOADED, VLLM_SERVING

SIGNATURES = load_catalog().signatures
MEMINFO = """\
MemTotal: 127611000 kB
MemFree: 90000000 kB
MemAvailable: 99000000 kB
SwapTotal: 16777212 kB
SwapFree: 16777212 kB
"""
GPU = (
    "name, driver_version, pstate, clocks.current.sm [MHz], clocks.max.sm [MHz], power.draw [W], temperature.gpu, "
    "utilization.gpu [%]\n"
)
IDLE = GPU + "NVIDIA GB10, 580.142, P8, 208 MHz, 3003 MHz, 4.51 W, 41, 0 %\n"
STUCK = GPU + "NVIDIA GB10, 580.142, P0, 611 MHz, 3003 MHz, 16.20 W, 44, 96 %\n"
BUSY = GPU + "NVIDIA GB10, 580.142, P0, 2411 MHz, 3003 MHz, 42.90 W, 61, 96 %\n"
MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.142  Release Build\nGCC version: 13\n"
ACTIVE = {"ActiveState": "active", "SubState": "running", "Result": "success", "NRestarts": "0"}


def document(**changes: Any) -> dict[str, Any]:
    """A healthy host's."""
    healthy = {
        "logs": [
            {"name": "journal", "kind": "engine", "text": VLLM_HEAD + VLLM_LOADED + VLLM_SERVING, "trouble": None},
            {"name": "kernel", "kind": "kernel", "text": KERNEL, "trouble": None},
            {"name": "earlyoom", "kind": "kernel", "text": EARLYOOM, "trouble": None},
        ],
        "files": {"/proc/meminfo": MEMINFO, "/proc/driver/nvidia/version": MODULE},
        "gpu": {"samples": [IDLE], "apps": ""},
        "unit": ACTIVE,
    }
    return {**healthy, **changes}


def names(given: dict[str, Any]) -> list[str]:
    return [finding.name for finding in diagnose(bundle_of(given), SIGNATURES).findings]


def test_a_healthy_host_has_no_finding_and_no_gap() -> None:
    told = diagnose(bundle_of(document()), SIGNATURES)

    assert told.findings == ()
    assert told.gaps == ()
    assert report(told) == ["no known failure is found"]


def test_a_busy_gpu_is_no_finding_and_a_stuck_one_is() -> None:
    assert names(document(gpu={"samples": [BUSY] * 3, "apps": ""})) == []
    assert names(document(gpu={"samples": [STUCK] * 3, "apps": ""}))[0] == "power-held-back"
    assert names(document(gpu={"samples": [STUCK, BUSY, STUCK], "apps": ""})) == []


def test_figures_of_memory_are_judged() -> None:
    short = MEMINFO.replace("MemAvailable: 99000000", "MemAvailable: 400000")
    full = MEMINFO.replace("SwapFree: 16777212", "SwapFree: 100000")
    kho = MEMINFO + "CmaTotal: 65536 kB\nCmaFree: 70000 kB\n"

    assert names(document(files={"/proc/meminfo": short})) == ["memory-short"]
    assert names(document(files={"/proc/meminfo": full})) == ["swap-thrash"]
    assert names(document(files={"/proc/meminfo": kho})) == ["kho"]
    both = short.replace("SwapFree: 16777212", "SwapFree: 100000")
    told = diagnose(bundle_of(document(files={"/proc/meminfo": both})), SIGNATURES).findings
    assert [(finding.name, finding.supported_by) for finding in told] == [("memory-short", ("swap-thrash",))]


def test_a_driver_that_was_upgraded_under_its_module_is_seen() -> None:
    other = MODULE.replace("580.142", "580.95.05")
    bad = IDLE.replace("580.142", "590.44.01")

    assert names(document(files={"/proc/driver/nvidia/version": other})) == ["gpu-lost-in-container"]
    assert names(document(files={}, gpu={"samples": [bad], "apps": ""})) == ["driver-590"]


def test_a_restart_loop_is_told_beside_its_cause() -> None:
    looping = {**ACTIVE, "ActiveState": "failed", "Result": "exit-code", "NRestarts": "3"}
    broken = {"name": "journal", "kind": "engine", "text": VLLM_HEAD + STORIES["gds-unsupported"].log, "trouble": None}

    assert names(document(unit=looping, logs=[broken])) == ["gds-unsupported", "restart-loop"]


def test_what_was_not_read_is_a_gap_and_not_a_health() -> None:
    refused = {
        "name": "kernel",
        "kind": "kernel",
        "text": "",
        "trouble": "dmesg: read kernel buffer failed: Operation not permitted",
    }
    told = diagnose(bundle_of(document(logs=[refused], gpu=None)), SIGNATURES)

    assert told.gaps == (f"kernel: {refused['trouble']}", "figures: nvidia-smi is not installed")
    assert report(told)[-2].startswith("not looked at: kernel: dmesg")


def test_the_first_start_in_progress_is_no_failure() -> None:
    starting = {**ACTIVE, "ActiveState": "activating", "SubState": "start-post"}
    capturing = VLLM_HEAD + STORIES["no-native-fp4"].log + STORIES["capture-hang"].log
    log = {"name": "journal", "kind": "engine", "text": capturing, "trouble": None}

    assert names(document(unit=starting, logs=[log])) == []


def failed(text: str, *more: Log) -> Bundle:
    return Bundle((Log("journal", "engine", tuple(text.splitlines())), *more), failed=True)


def test_the_cause_stands_before_its_consequences_and_takes_their_lines() -> None:
    kernel = Log("kernel", "kernel", tuple((KERNEL + STORIES["xid-31"].log).splitlines()))
    findings = diagnose(failed(VLLM_HEAD + STORIES["cuda-graph-crash"].log, kernel), SIGNATURES).findings

    assert [finding.name for finding in findings] == ["cuda-graph-crash"]
    assert findings[0].supported_by == ("xid-31", "illegal-memory-access")
    assert {line.log for line in findings[0].evidence} == {"journal", "kernel"}


def test_a_killed_core_process_is_explained_by_the_kernel() -> None:
    kernel = Log("kernel", "kernel", tuple((KERNEL + STORIES["kernel-oom-kill"].log).splitlines()))
    ended = VLLM_HEAD + VLLM_LOADED + STORIES["oom-killed"].rest

    assert [finding.name for finding in diagnose(failed(ended), SIGNATURES).findings] == ["oom-killed"]
    assert [finding.name for finding in diagnose(failed(ended, kernel), SIGNATURES).findings] == ["kernel-oom-kill"]


def test_an_exception_that_no_signature_knows_is_told_as_it_is() -> None:
    error = "(EngineCore pid=185) ERROR 11-29 21:05:01 [core.py:1330] ZeroDivisionError: division by zero\n"
    findings = diagnose(failed(VLLM_HEAD + error + CORE_ENDED), SIGNATURES).findings

    assert [finding.name for finding in findings] == ["unknown"]
    assert "ZeroDivisionError: division by zero" in findings[0].meaning
    assert findings[0].evidence[0].line == len(VLLM_HEAD.splitlines()) + 1


def test_a_failure_without_any_sign_has_no_finding() -> None:
    assert diagnose(failed(VLLM_HEAD + VLLM_LOADED), SIGNATURES).findings == ()


def test_a_line_that_takes_back_is_heeded() -> None:
    """Under eager mode the same words are another failure."""
    eager = VLLM_HEAD.replace("enforce_eager=False", "enforce_eager=True") + STORIES["cuda-graph-crash"].log

    assert [finding.name for finding in diagnose(failed(eager), SIGNATURES).findings] == ["illegal-memory-access"]


def test_secrets_of_the_fleet_are_hidden_in_evidence() -> None:
    error = "RuntimeError: CUDA error: an illegal memory access was encountered for correct-horse\n"
    log = {"name": "journal", "kind": "engine", "text": VLLM_HEAD + error, "trouble": None}
    bundle = bundle_of(document(logs=[log]), ["correct-horse"])
    text = "\n".join(report(diagnose(bundle, SIGNATURES)))

    assert "illegal memory access" in text
    assert "correct-horse" not in text


def test_the_report_quotes_line_count_and_remedy() -> None:
    text = report(
        diagnose(Bundle((Log("kernel", "kernel", tuple(STORIES["memory-wedge"].log.splitlines())),)), SIGNATURES)
    )

    assert text[0].startswith("1. the unified memory is exhausted or fragmented")
    assert text[1].startswith("   kernel line 1 (3 times): 2026-11-29T21:31:50+0000 spark-1 kernel: NVRM: nvCheckOk")
    assert text[-1] == f"   what to do: {SIGNATURES['memory-wedge'].action}"


def test_a_signature_with_two_patterns_needs_both() -> None:
    two = Signature(patterns=("first", "second"), where=("engine",), meaning="m", action="a", source="s")
    logs = (Log("a", "engine", ("the first",)), Log("b", "engine", ("the second",)))

    assert diagnose(Bundle(logs[:1]), {"two": two}).findings == ()
    assert len(diagnose(Bundle(logs), {"two": two}).findings[0].evidence) == 2


def test_the_kind_of_log_counts() -> None:
    kernel_only = Signature(patterns=("word",), where=("kernel",), meaning="m", action="a", source="s")

    assert diagnose(Bundle((Log("a", "engine", ("word",)),)), {"one": kernel_only}).findings == ()


def test_ranking_is_certainty_then_signs_then_age() -> None:
    def signature(pattern: str, **more: Any) -> Signature:
        return Signature(patterns=(pattern,), where=("engine",), meaning="m", action="a", source="s", **more)

    known = {
        "late": signature("late"),
        "early": signature("early"),
        "maybe": signature("maybe", certain=False),
        "strong": signature("strong"),
        "weak": signature("weak", yields_to=("strong",)),
    }
    lines = ("maybe", "early", "late", "strong", "weak")
    findings = diagnose(Bundle((Log("a", "engine", lines),), failed=True), known).findings

    assert [finding.name for finding in findings] == ["strong", "early", "late", "maybe"]
