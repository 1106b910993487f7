"""Failure signatures on lines in the forms that programs print, and on lines of healthy starts."""

from __future__ import annotations

import re

import pytest

from modules.catalog import load_catalog

SIGNATURES = load_catalog().signatures

FAILURES = {
    "cuda-graph-crash": "RuntimeError: CUDA error: an illegal memory access was encountered",
    "xid-31": "NVRM: Xid (PCI:000f:01:00): 31, Ch 00000018, intr 00000000. MMU Fault: ENGINE GRAPHICS",
    "memory-wedge": (
        "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) "
        "returned from _memdescAllocInternal(pMemDesc) @ mem_desc.c:1359"
    ),
    "memory-not-free-at-start": (
        "ValueError: Free memory on device cuda:0 (61.2/121.69 GiB) on startup is less than desired GPU memory "
        "utilization (0.7, 85.18 GiB)."
    ),
    "shared-memory-too-small": "Insufficient space in /dev/shm (64 MiB), 160 MiB required",
    "oom-killed": "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "kernel-oom-kill": "Out of memory: Killed process 4711 (VLLM::EngineCor) total-vm:1234kB",
    "ptxas-too-old": "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
    "fp4-conversion-missing": (
        "ptxas /tmp/x.ptx, line 12; error   : Feature 'cvt.rn.satfinite.e2m1x2.f32' not supported on .target 'sm_121'"
    ),
    "triton-scatter4": "error : Modifier '.tile::scatter4' not supported on .target 'sm_121a'",
    "flag-unknown": "vllm: error: unrecognized arguments: --mxfp4-backend CUTLASS --mxfp4-layers moe",
    "variable-unknown": "WARNING [envs.py:1] Unknown vLLM environment variable detected: VLLM_MXFP4_BACKEND",
    "marlin-fallback": "INFO 11-30 [mxfp4.py:187] [MXFP4] Auto-selected: Marlin (universal fallback)",
    "no-native-fp4": "Your GPU does not have native support for FP4 computation but FP4 quantization is being used.",
    "harmony-error": "openai_harmony.HarmonyError: Unexpected: unexpected tokens remaining in message header: Some(x)",
    "empty-replies": "not ready: the reply has neither content nor reasoning",
    "gds-unsupported": "RuntimeError: GDS is not supported in this platform but nogds is False",
    "fastsafetensors-on-cpu": "RuntimeError: Invalid device string: 'cuda:cpu'",
    "triton-kernels-mismatch": "ModuleNotFoundError: No module named 'triton_kernels.routing'",
    "opencv-circular-import": (
        "ImportError: cannot import name 'NamedTuple' from partially initialized module 'typing' (most likely due to a "
        "circular import) (/usr/local/lib/python3.12/dist-packages/cv2/typing/__init__.py)"
    ),
    "wheel-without-sm121": "AcceleratorError: CUDA error: no kernel image is available for execution on the device",
    "gpu-lost-in-container": "Failed to initialize NVML: Unknown Error",
    "batched-tokens-too-large": "non-default args: {'max_num_batched_tokens': 65536, 'port': 8000}",
    "encoding-not-loaded": (
        "openai_harmony.HarmonyError: error downloading or loading vocab file: failed to download or load vocab file"
    ),
    "encoding-missing": "invalid tiktoken vocab file: /e/o200k_base.tiktoken: No such file or directory (os error 2)",
    "encoding-corrupt": "hash mismatch for remote file: computed=11ab, expected=446a",
    "shard-truncated": "Exception: MetadataIncompleteBuffer, path=model-00002-of-00014.safetensors size_bytes=12",
    "hub-gated": "Error: Access denied. Model 'acme/private' requires approval.",
    "hub-rate-limit": "429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/x",
    "xet-hang": "Successfully installed hf-xet 1.5.1",
    "no-space": "OSError: [Errno 28] No space left on device",
    "dead-pin": "fatal: reference is not a tree: 7554e4a32b15929289aa80e8bc8a4e5f6f779407",
    "commit-missing": "error: pathspec 'v9.9' did not match any file(s) known to git",
    "compiler-killed": "FAILED: [code=137] CMakeFiles/moe.dir/moe_gemm.cu.o ",
    "pull-stopped": "failed to copy: httpReadSeeker: failed open: unexpected EOF",
    "base-image-missing": "ERROR: failed to resolve source metadata for nvcr.io/nvidia/pytorch:26.01-py3",
    "certificate-refused": "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",
    "nccl-socket": "spark-1:99:99 [0] NCCL INFO NET/Socket : Using [0]enp1s0f1np1:192.168.100.1<0>",
    "kho": "ibv_reg_mr_iova2 failed with error Cannot allocate memory",
    "nccl-init-hang": "WARNING [custom_all_reduce.py:92] Custom allreduce is disabled because this process group spans",
    "slot-power-warning": "mlx5_core 0000:01:00.0: Detected insufficient power on the PCIe slot (27W).",
    "driver-590": "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  590.44.01  Release Build",
}

HEALTHY = """\
INFO 11-30 [model.py:547] Resolved architecture: GptOssForCausalLM
INFO 11-30 [mxfp4.py:246] [MXFP4] Using backend: CUTLASS (--mxfp4-backend)
INFO 11-30 [cuda.py:300] Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'TRITON_ATTN'].
non-default args: {'max_num_batched_tokens': 8192, 'max_num_seqs': 2}
INFO 11-30 [default_loader.py:314] Loading weights took 96.41 seconds
INFO 11-30 [gpu_worker.py:298] Available KV cache memory: 21.33 GiB
INFO 11-30 [kv_cache_utils.py:1087] GPU KV cache size: 606,592 tokens
INFO:     Application startup complete.
INFO 11-30 [loggers.py:161] Engine 000: Avg prompt throughput: 204.7 tokens/s, Avg generation throughput: 58.3 tokens/s
spark-1:99:99 [0] NCCL INFO NET/IB : Using [0]rocep1s0f1:1/RoCE
NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build
NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64  580.95.05
#12 DONE 1843.2s
[4211/4211] Linking CXX shared library lib_moe.so
The server is fired up and ready to roll!
0.38.936.083 srv  llama_server: server is listening on http://127.0.0.1:8000
""".splitlines()


def test_every_signature_has_its_line() -> None:
    assert FAILURES.keys() == SIGNATURES.keys()


@pytest.mark.parametrize("name", FAILURES)
def test_signature_is_found_among_other_lines(name: str) -> None:
    log = [*HEALTHY[:5], FAILURES[name], *HEALTHY[5:]]

    assert name in found(log)


@pytest.mark.parametrize("name", FAILURES)
def test_failure_is_not_taken_for_another_one(name: str) -> None:
    """One that says more may stand beside it; what is certain must be right."""
    together = {("dead-pin", "commit-missing"), ("no-native-fp4", "marlin-fallback")}
    others = {other for other in found([FAILURES[name]]) - {name} if SIGNATURES[other].certain}

    assert all((name, other) in together for other in others), others


def test_healthy_lines_match_nothing() -> None:
    assert found(HEALTHY) == set()


def found(log: list[str]) -> set[str]:
    return {
        name
        for name, signature in SIGNATURES.items()
        if all(any(re.search(pattern, line) for line in log) for pattern in signature.patterns)
    }
