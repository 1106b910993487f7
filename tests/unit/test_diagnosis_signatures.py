"""Every signature of the catalog on a log with other noise in it, and logs of healthy hosts that match nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.diagnosis import Bundle, Diagnosis, Log, diagnose, mask_lines
from modules.facts.parse.text import lines_of
from modules.spec.signature import LogSource
from tests.unit.failure_logs import BUILD, EARLYOOM, FETCH, HEADS, KERNEL, STORIES, VLLM_HEAD, VLLM_LOADED, VLLM_SERVING

SIGNATURES = load_catalog().signatures
SAMPLES = Path(__file__).parents[1] / "samples"
# What only supports another finding: it is that one's evidence, or stands after it.
BESIDE_ANOTHER = {
    "slot-power-warning": "power-held-back",
    "batched-tokens-too-large": "cuda-out-of-memory",
}


def log(name: str, kind: LogSource, text: str) -> Log:
    return Log(name, kind, mask_lines(lines_of(text)))


def told(name: str) -> Diagnosis:
    """The diagnosis of a failed service on a host where everything else is as ever."""
    story = STORIES[name]
    head = HEADS.get(story.kind, "") if story.head is None else story.head
    logs = [log("failure", story.kind, head + story.log + story.rest)]
    if story.kind != "kernel":
        logs.append(log("kernel", "kernel", KERNEL + story.kernel))
    logs.append(log("earlyoom", "kernel", EARLYOOM))
    return diagnose(Bundle(tuple(logs), failed=True), SIGNATURES)


def test_every_signature_has_a_story() -> None:
    assert STORIES.keys() == SIGNATURES.keys()


@pytest.mark.parametrize("name", [name for name in STORIES if name not in BESIDE_ANOTHER])
def test_the_failure_is_the_first_finding(name: str) -> None:
    findings = told(name).findings

    assert findings[0].name == name, [finding.name for finding in findings]
    assert findings[0].certain == SIGNATURES[name].certain
    assert [finding.name for finding in findings[1:] if finding.certain] == []
    assert all(line.text for line in findings[0].evidence)


@pytest.mark.parametrize(("name", "first"), BESIDE_ANOTHER.items())
def test_a_supporting_sign_stands_beside_what_it_supports(name: str, first: str) -> None:
    findings = told(name).findings

    assert [finding.name for finding in findings] == [first, name]
    assert not findings[1].certain


@pytest.mark.parametrize("name", STORIES)
def test_masking_keeps_what_a_signature_needs(name: str) -> None:
    text = STORIES[name].log

    assert mask_lines(text.splitlines()) == tuple(text.splitlines())


def test_names_that_signatures_refer_to_exist() -> None:
    for signature in SIGNATURES.values():
        assert {*signature.yields_to, *signature.supports} <= SIGNATURES.keys()


# Each row of the collected failures of Sparks in its own words, and those of the thread that the baselines are from.
ROWS: tuple[tuple[str, LogSource, str], ...] = (
    ("cuda-graph-crash", "engine", "CUDA error: an illegal memory access was encountered in replay()"),
    ("xid-31", "kernel", "NVRM: Xid (PCI:000f:01:00): 31, pid=185, Ch 0000001a, MMU Fault"),
    ("xid-31", "kernel", "NVRM: Xid (PCI:000f:01:00): 31, MMU Fault: ENGINE GRAPHICS"),
    (
        "memory-wedge",
        "kernel",
        "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from "
        "_memdescAllocInternal(pMemDesc)",
    ),
    (
        "memory-not-free-at-start",
        "engine",
        "Free memory on device cuda:0 (60.1/121.63 GiB) on startup is less than desired GPU memory utilization (0.7)",
    ),
    ("ptxas-too-old", "engine", "ptxas fatal : Value 'sm_121a' is not defined for option 'gpu-name'"),
    ("fp4-conversion-missing", "engine", "Instruction 'cvt.e2m1x2.f32' not supported on .target 'sm_121'"),
    ("triton-scatter4", "engine", "Modifier '.tile::scatter4' not supported on .target 'sm_121a'"),
    ("flag-unknown", "engine", "vllm: error: unrecognized arguments: --mxfp4-backend CUTLASS"),
    ("variable-unknown", "engine", "Unknown vLLM environment variable: VLLM_MXFP4_BACKEND"),
    ("marlin-fallback", "engine", "INFO [mxfp4.py:120] Using Marlin backend"),
    ("no-native-fp4", "engine", "Your GPU does not have native support for FP4 computation but FP4 is being used"),
    ("dead-pin", "build", "fatal: reference is not a tree: 7554e4a"),
    ("compiler-killed", "build", "Killed                  cicc --c++17 moe_gemm.cu"),
    *(("compiler-killed", "build", f"FAILED: [code={code}] moe_gemm.cu.o") for code in (137, 143, 255)),
    ("encoding-not-loaded", "engine", "HarmonyError: error downloading or loading vocab file"),
    ("encoding-corrupt", "engine", "hash mismatch for remote file: computed=11ab, expected=446a"),
    ("harmony-error", "engine", "HarmonyError: Unexpected: unexpected tokens remaining in message header: x"),
    ("empty-replies", "engine", "the server answers, but with empty content and reasoning (3 times): wrong kernels"),
    ("gds-unsupported", "engine", "GDS is not supported in this platform but nogds is False"),
    ("triton-kernels-mismatch", "engine", "ModuleNotFoundError: No module named 'triton_kernels.routing'"),
    (
        "opencv-circular-import",
        "engine",
        "AttributeError: partially initialized module 'cv2' has no attribute 'typing' (most likely due to a circular "
        "import)",
    ),
    ("wheel-without-sm121", "engine", "CUDA error: no kernel image is available for execution on the device"),
    ("gpu-lost-in-container", "engine", "Failed to initialize NVML: Unknown Error"),
    ("gpu-lost-in-container", "engine", "Failed to initialize NVML: Driver/library version mismatch"),
    ("nccl-socket", "engine", "spark-1:99:99 [0] NCCL INFO NET/Socket : Using [0]enp1s0f1np1"),
    ("kho", "engine", "ibv_reg_mr_iova2 failed: Cannot allocate memory"),
    ("kho", "machine", "CmaFree is above CmaTotal: 4.1 of 0.0 GiB"),
    ("nccl-init-hang", "engine", "WARNING CustomAllreduce is disabled because this process group spans across nodes"),
    ("power-held-back", "machine", "GPU busy at a low clock: 96 % busy, 611 MHz, 16.2 W"),
    ("host-unreachable", "connection", "Connection timed out during banner exchange"),
    # The thread's own: dead at start by opencv, kernels compiled for minutes, a box that hangs, raw Harmony text.
    (
        "opencv-circular-import",
        "engine",
        "ImportError: cannot import name 'NamedTuple' from partially initialized module 'typing' (most likely due to a "
        "circular import) (/usr/local/lib/python3.12/dist-packages/cv2/typing/__init__.py)",
    ),
    ("engine-died", "engine", "RuntimeError: Engine core initialization failed. See root cause above."),
    ("batched-tokens-too-large", "engine", "non-default args: {'max_num_batched_tokens': 65536}"),
    ("harmony-not-parsed", "engine", "Failed to parse input at pos 0: <|channel|>analysis<|message|>We need"),
)


@pytest.mark.parametrize(("name", "kind", "line"), ROWS)
def test_each_collected_failure_is_known_by_its_own_words(name: str, kind: LogSource, line: str) -> None:
    signature = SIGNATURES[name]
    assert kind in signature.where
    assert any(re.search(pattern, line) for pattern in signature.patterns), signature.patterns


HEALTHY: dict[str, tuple[LogSource, str]] = {
    "vllm": ("engine", VLLM_HEAD + VLLM_LOADED + VLLM_SERVING),
    "vllm, with the warning that FP4 is not native": (
        "engine",
        VLLM_HEAD
        + STORIES["no-native-fp4"].log
        + VLLM_SERVING
        + "spark-1:99:99 [0] NCCL INFO NET/IB : Using [0]rocep1s0f1:1/RoCE\n",
    ),
    "vllm, native MXFP4": (
        "engine",
        VLLM_HEAD
        + "(EngineCore pid=185) INFO 11-29 21:04:34 [mxfp4.py:246] [MXFP4] Using backend: CUTLASS (--mxfp4-backend)\n"
        + VLLM_LOADED
        + VLLM_SERVING,
    ),
    "a start and a stop under gate and guard": (
        "engine",
        "memory-gate: 117.1 GiB are available, 92.0 GiB are needed\n"
        + VLLM_HEAD
        + "load-guard: gave the page cache back: the engine loads, and little memory is free\n"
        + VLLM_LOADED
        + "await-ready: ready after 95 s: 'Hello!'\n"
        + VLLM_SERVING
        + "memory-return: 116.8 GiB are available again after 3 s\n",
    ),
    "vllm sample": ("engine", (SAMPLES / "vllm-start.txt").read_text()),
    "sglang sample": ("engine", (SAMPLES / "sglang-start.txt").read_text()),
    "llama-server sample": ("engine", (SAMPLES / "llama-server-start.txt").read_text()),
    "kernel": ("kernel", KERNEL),
    "earlyoom": ("kernel", EARLYOOM),
    "build": ("build", BUILD),
    "build sample": ("build", (SAMPLES / "docker-build-ok.txt").read_text()),
    "fetch": ("fetch", FETCH),
    "figures": ("machine", "driver 580.142\n"),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_matches_nothing(name: str) -> None:
    kind, text = HEALTHY[name]

    assert diagnose(Bundle((log(name, kind, text),)), SIGNATURES).findings == ()


def test_healthy_logs_together_match_nothing() -> None:
    logs = tuple(log(name, kind, text) for name, (kind, text) in HEALTHY.items())

    assert diagnose(Bundle(logs), SIGNATURES).findings == ()


def test_what_another_container_s_own_limit_killed_is_not_the_host_s_want_of_memory() -> None:
    kernel = """spark-1 kernel: python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
spark-1 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=9f2c,mems_allowed=0,oom_memcg=/docker/9f2c,task_memcg=/docker/9f2c,task=python,pid=4242,uid=0
spark-1 kernel: Memory cgroup out of memory: Killed process 4242 (python) total-vm:1204224kB, anon-rss:1048576kB
"""  # noqa: E501
    assert diagnose(Bundle((log("kernel", "kernel", kernel),), failed=True), SIGNATURES).findings == ()
