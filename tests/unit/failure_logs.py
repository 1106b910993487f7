"""Logs of failures in the forms that the programs print, each with the noise that stands around it on a real Spark."""

# ruff: noqa: E501 (a log's lines are as long as they are)
from __future__ import annotations

from dataclasses import dataclass

from modules.spec.signature import LogSource

VLLM_HEAD = """\
(APIServer pid=1) INFO 11-29 21:04:07 [utils.py:233] non-default args: {'model_tag': '/models/gpt-oss', 'enable_auto_tool_choice': True, 'tool_call_parser': 'openai', 'host': '127.0.0.1', 'max_model_len': 131072, 'served_model_name': ['gpt-oss-120b'], 'gpu_memory_utilization': 0.7, 'kv_cache_dtype': 'fp8', 'max_num_batched_tokens': 8192, 'max_num_seqs': 2}
(APIServer pid=1) INFO 11-29 21:04:15 [model.py:533] Resolved architecture: GptOssForCausalLM
(APIServer pid=1) INFO 11-29 21:04:15 [cache.py:247] Using fp8 data type to store kv cache. It reduces the GPU memory footprint and boosts the performance.
(EngineCore pid=185) INFO 11-29 21:04:29 [core.py:107] Initializing a V1 LLM engine (v0.13.1) with config: model='/models/gpt-oss', quantization=mxfp4, enforce_eager=False, kv_cache_dtype=fp8
(EngineCore pid=185) INFO 11-29 21:04:31 [parallel_state.py:1325] world_size=1 rank=0 local_rank=0 distributed_init_method=tcp://192.168.1.20:41873 backend=nccl
(EngineCore pid=185) INFO 11-29 21:04:32 [cuda.py:300] Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'TRITON_ATTN'].
(EngineCore pid=185) WARNING 11-29 21:04:33 [custom_all_reduce.py:92] Custom allreduce is disabled because this platform lacks support
"""
VLLM_LOADED = """\
(EngineCore pid=185) INFO 11-29 21:06:12 [default_loader.py:384] Loading weights took 96.41 seconds
(EngineCore pid=185) INFO 11-29 21:06:13 [gpu_model_runner.py:4854] Model loading took 66.31 GiB memory and 103.432981 seconds
(EngineCore pid=185) INFO 11-29 21:06:31 [gpu_worker.py:440] Available KV cache memory: 14.12 GiB
(EngineCore pid=185) INFO 11-29 21:06:31 [kv_cache_utils.py:1337] GPU KV cache size: 606,592 tokens
"""
VLLM_SERVING = """\
(EngineCore pid=185) INFO 11-29 21:06:44 [gpu_model_runner.py:6094] Graph capturing finished in 5 secs, took 0.03 GiB
(EngineCore pid=185) INFO 11-29 21:06:44 [core.py:298] init engine (profile, create kv cache, warmup model) took 25.81 s (compilation: 7.53 s)
(APIServer pid=1) INFO 11-29 21:06:45 [api_server.py:1351] Starting vLLM server on http://127.0.0.1:8000
(APIServer pid=1) INFO:     Application startup complete.
(APIServer pid=1) INFO 11-29 21:07:10 [loggers.py:271] Engine 000: Avg prompt throughput: 204.7 tokens/s, Avg generation throughput: 58.3 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.6%, Prefix cache hit rate: 0.0%
(APIServer pid=1) INFO:     127.0.0.1:40312 - "POST /v1/chat/completions HTTP/1.1" 200 OK
"""
CORE_ENDED = """\
(APIServer pid=1)   File "/usr/local/lib/python3.12/dist-packages/vllm/v1/engine/utils.py", line 1119, in wait_for_engine_startup
(APIServer pid=1)     raise RuntimeError(
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}
"""
KERNEL = """\
2026-11-29T20:58:01+0000 spark-1 kernel: Linux version 6.17.0-1029-nvidia (buildd@bos03-arm64-064) #29-Ubuntu SMP
2026-11-29T20:58:03+0000 spark-1 kernel: NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64  580.142  Release Build  (dvs-builder@U22-I3-B17-02-5)
2026-11-29T20:58:04+0000 spark-1 kernel: mlx5_core 0000:01:00.0: firmware version: 28.45.4028
2026-11-29T20:58:04+0000 spark-1 kernel: mlx5_core 0000:01:00.0: mlx5_pcie_event:326:(pid 9): Detected insufficient power on the PCIe slot (27W).
2026-11-29T20:58:09+0000 spark-1 kernel: docker0: port 1(veth8a1e3d9) entered forwarding state
"""
EARLYOOM = """\
earlyoom v1.7
mem total: 124610 MiB, swap total: 16383 MiB
sending SIGTERM when mem <= 10.00% and swap <= 10.00%,
        SIGKILL when mem <=  5.00% and swap <=  5.00%
mem avail: 41210 of 124610 MiB (33.07%), swap free: 16383 of 16383 MiB (100.00%)
mem avail:     0 of 124610 MiB ( 0.00%), swap free: 16383 of 16383 MiB (100.00%)
"""
BUILD = """\
#1 [internal] load build definition from Dockerfile
#8 [build 3/9] RUN git clone --branch mxfp4_v2 https://github.com/christopherowen/flashinfer.git
#8 12.41 Cloning into 'flashinfer'...
#11 412.2 [311/4211] Building CUDA object CMakeFiles/_moe_C.dir/csrc/moe/topk_softmax_kernels.cu.o
#11 412.9 ptxas info    : 0 bytes gmem
"""
FETCH = """\
Fetching 18 files:  11%|█         | 2/18 [00:04<00:34,  2.16s/it]
Downloading 'model-00002-of-00014.safetensors' to '/var/lib/tinderbox/huggingface/hub/models--openai--gpt-oss-120b/blobs/a7c2.incomplete'
"""


@dataclass(frozen=True)
class Story:
    """`log`: what the failure adds to the head of a healthy log of its kind. `rest`: what stands after it.

    `kernel`: what the kernel logs meanwhile.
    """

    kind: LogSource
    log: str
    rest: str = ""
    head: str | None = None
    kernel: str = ""


def _core(error: str) -> str:
    """How an exception of the core process comes out."""
    return f"""\
(EngineCore pid=185) ERROR 11-29 21:05:01 [core.py:1330] EngineCore failed to start.
(EngineCore pid=185) ERROR 11-29 21:05:01 [core.py:1330] Traceback (most recent call last):
(EngineCore pid=185) ERROR 11-29 21:05:01 [core.py:1330]   File "/workspace/vllm/vllm/v1/engine/core.py", line 946, in run_engine_core
(EngineCore pid=185) ERROR 11-29 21:05:01 [core.py:1330] {error}
"""


def _kernel(message: str) -> str:
    return f"2026-11-29T21:31:50+0000 spark-1 kernel: {message}\n"


_XID = "NVRM: Xid (PCI:000f:01:00): 31, pid=185, name=VLLM::EngineCor, Ch 0000001a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_3 faulted @ 0xfffd_40000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
_MARLIN = "(EngineCore pid=185) INFO 11-29 21:04:34 [mxfp4.py:187] [MXFP4] Auto-selected: Marlin (universal fallback)\n"
_REPLIES_EMPTY = "await-ready: not ready after 212 s: the server answers, but with empty content and reasoning (3 times): wrong kernels or a missing parser\n"

STORIES: dict[str, Story] = {
    "cuda-graph-crash": Story(
        "engine",
        VLLM_LOADED
        + VLLM_SERVING
        + """\
(EngineCore pid=185) ERROR 11-29 21:31:51 [core.py:872]   File "/workspace/vllm/vllm/compilation/cuda_graph.py", line 223, in __call__
(EngineCore pid=185) ERROR 11-29 21:31:51 [core.py:872]     entry.cudagraph.replay()
(EngineCore pid=185) ERROR 11-29 21:31:51 [core.py:872] torch.AcceleratorError: CUDA error: an illegal memory access was encountered
""",
        '(APIServer pid=1) INFO:     127.0.0.1:40320 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error\n',
    ),
    "illegal-memory-access": Story(
        "engine",
        VLLM_LOADED + "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n",
        head=VLLM_HEAD.replace("enforce_eager=False", "enforce_eager=True"),
    ),
    "xid-31": Story("kernel", _kernel(_XID)),
    "memory-wedge": Story(
        "kernel",
        _kernel(
            "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from "
            "_memdescAllocInternal(pMemDesc) @ mem_desc.c:1359"
        )
        * 3,
    ),
    "memory-not-free-at-start": Story(
        "engine",
        _core(
            "ValueError: Free memory on device cuda:0 (61.2/121.69 GiB) on startup is less than desired GPU memory "
            "utilization (0.7, 85.18 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
        ),
        CORE_ENDED,
    ),
    "shared-memory-too-small": Story(
        "engine", _core("RuntimeError: Insufficient space in /dev/shm (64 MiB), 160 MiB required"), CORE_ENDED
    ),
    "oom-killed": Story(
        "engine",
        VLLM_LOADED,
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {}\n",
    ),
    "kernel-oom-kill": Story(
        "kernel",
        _kernel("VLLM::EngineCor invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0")
        + _kernel(
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=docker-9a.scope,task=VLLM::EngineCor,pid=4711,uid=0"
        )
        + _kernel("Out of memory: Killed process 4711 (VLLM::EngineCor) total-vm:143822904kB, anon-rss:98211kB"),
    ),
    "ptxas-too-old": Story(
        "engine",
        _core("RuntimeError: `ptxas` failed with error code 255:")
        + "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'\n",
        CORE_ENDED,
    ),
    "fp4-conversion-missing": Story(
        "engine",
        "ptxas /tmp/tmpxft_00000b7c/moe.ptx, line 1187; error   : Feature 'cvt.rn.satfinite.e2m1x2.f32' not supported "
        "on .target 'sm_121'\nptxas fatal   : Ptx assembly aborted due to errors\nninja: build stopped: subcommand failed.\n",
        CORE_ENDED,
    ),
    "triton-scatter4": Story(
        "engine",
        "ptxas /tmp/tmp7p.ptx, line 402; error   : Modifier '.tile::scatter4' not supported on .target 'sm_121a'\n",
        CORE_ENDED,
    ),
    "flag-unknown": Story(
        "engine",
        "usage: vllm [-h] [-v] {chat,complete,serve,bench,collect-env,run-batch} ...\n"
        "vllm: error: unrecognized arguments: --mxfp4-backend CUTLASS --mxfp4-layers moe,qkv,o,lm_head\n",
        head="",
    ),
    "flag-refused": Story(
        "engine",
        "usage: vllm serve [model_tag] [options]\n"
        "vllm serve: error: argument --kv-cache-dtype: invalid choice: 'fp9' (choose from 'auto', 'fp8', 'fp8_e4m3')\n",
        head="",
    ),
    "variable-unknown": Story(
        "engine",
        "(APIServer pid=1) WARNING 11-29 21:04:02 [envs.py:1083] Unknown vLLM environment variable detected: "
        "VLLM_MXFP4_BACKEND\n",
    ),
    "marlin-fallback": Story("engine", _MARLIN + VLLM_LOADED + VLLM_SERVING),
    "marlin-for-cutlass": Story(
        "engine",
        _MARLIN + VLLM_LOADED + VLLM_SERVING,
        head=VLLM_HEAD.replace("'max_num_seqs': 2", "'max_num_seqs': 2, 'mxfp4_backend': 'CUTLASS'"),
    ),
    "wrong-backend": Story(
        "engine",
        VLLM_LOADED
        + "await-ready: not ready after 230 s: the server answers, but its log never said: \\[MXFP4\\] Using backend: CUTLASS\n",
    ),
    "no-native-fp4": Story(
        "engine",
        "(EngineCore pid=185) WARNING 11-29 21:04:40 [marlin_utils_fp4.py:226] Your GPU does not have native support for "
        "FP4 computation but FP4 quantization is being used. Weight-only FP4 compression will be used leveraging the "
        "Marlin kernel.\n" + VLLM_LOADED,
    ),
    "harmony-error": Story(
        "engine",
        VLLM_LOADED
        + VLLM_SERVING
        + "(APIServer pid=1) ERROR 11-29 21:20:44 [serving_chat.py:1145] openai_harmony.HarmonyError: Unexpected: "
        'unexpected tokens remaining in message header: Some("The weather in")\n',
        VLLM_SERVING,
    ),
    "harmony-not-parsed": Story(
        "engine",
        'srv    operator(): got exception: {"error":{"code":500,"message":"Failed to parse input at pos 0: '
        '<|channel|>analysis<|message|>We need","type":"server_error"}}\n',
        head="0.00.302.531 I srv  llama_server: n_parallel is set to auto, using n_parallel = 4 and kv_unified = true\n"
        "0.38.936.083 I srv  llama_server: server is listening on http://127.0.0.1:8000\n",
    ),
    "empty-replies": Story("engine", _MARLIN + VLLM_LOADED + VLLM_SERVING, _REPLIES_EMPTY),
    "gds-unsupported": Story(
        "engine", _core("RuntimeError: GDS is not supported in this platform but nogds is False"), CORE_ENDED
    ),
    "fastsafetensors-on-cpu": Story("engine", _core("RuntimeError: Invalid device string: 'cuda:cpu'"), CORE_ENDED),
    "triton-kernels-mismatch": Story(
        "engine", _core("ModuleNotFoundError: No module named 'triton_kernels.routing'"), CORE_ENDED
    ),
    "opencv-circular-import": Story(
        "engine",
        _core(
            "ImportError: cannot import name 'NamedTuple' from partially initialized module 'typing' (most likely due "
            "to a circular import) (/usr/local/lib/python3.12/dist-packages/cv2/typing/__init__.py)"
        ),
        CORE_ENDED,
    ),
    "module-missing": Story(
        "engine",
        "(APIServer pid=1) ModuleNotFoundError: No module named 'compressed_tensors.compressors.pack_quantized'\n",
    ),
    "wheel-without-sm121": Story(
        "engine",
        VLLM_LOADED
        + _core("torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"),
        CORE_ENDED,
    ),
    "scaled-mm-kernel-missing": Story(
        "engine",
        _core("ValueError: Failed to find a kernel that can implement the ScaledMM linear layer. Reasons:"),
        CORE_ENDED,
    ),
    "cutlass-internal": Story(
        "engine",
        _core(
            "RuntimeError: cutlass_gemm_caller, /workspace/csrc/quantization/w8a8/cutlass/c3x/cutlass_gemm_caller.cuh:62, "
            "Error Internal"
        ),
        CORE_ENDED,
    ),
    "batch-smaller-than-item": Story(
        "engine",
        "(APIServer pid=1) ValueError: Chunked MM input disabled but max_tokens_per_mm_item (2496) is larger than "
        "max_num_batched_tokens (2048). Please increase max_num_batched_tokens.\n",
    ),
    "kv-cache-type-refused": Story(
        "engine",
        "[2026-11-29 21:04:03] AssertionError: KV4 MHA expects attention_backend to be one of ['triton', 'torch_native'], "
        "but got flashinfer\n",
        head="[2026-11-29 21:04:02] server_args=ServerArgs(model_path='openai/gpt-oss-120b', kv_cache_dtype='fp4_e2m1')\n",
    ),
    "context-does-not-fit": Story(
        "engine",
        _core(
            "ValueError: To serve at least one request with the models's max seq len (131072), (4.79 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (2.21 GiB). Based on the available memory, the "
            "estimated maximum model length is 47104."
        ),
        CORE_ENDED,
    ),
    "cuda-out-of-memory": Story(
        "engine",
        _core("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of"),
        CORE_ENDED,
    ),
    "sglang-memory": Story(
        "engine",
        "[2026-11-29 21:05:11] Scheduler hit an exception: Traceback (most recent call last):\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: 0.5\n",
        head="[2026-11-29 21:05:10] Load weight end. elapsed=33.49 s, type=GptOssForCausalLM, mem usage=66.40 GB.\n",
    ),
    "capture-hang": Story(
        "engine",
        VLLM_LOADED
        + "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  14%|█▍        | 5/35 [00:02<00:12,  2.42it/s]\n",
    ),
    "first-start-compiles": Story(
        "engine",
        "(EngineCore pid=185) INFO 11-29 21:05:01 flashinfer.jit: Loading JIT ops: fused_moe_120\n",
        "await-ready: not ready after 1200 s: not ready in time: http://127.0.0.1:8000/v1/models: Connection refused\n",
    ),
    "engine-died": Story("engine", "", CORE_ENDED),
    "port-taken": Story(
        "engine",
        "(APIServer pid=1) ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): "
        "address already in use\n",
    ),
    "weights-missing": Story(
        "engine",
        "(APIServer pid=1) OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find "
        "them in the cached files.\n",
    ),
    "gpu-lost-in-container": Story(
        "engine",
        "Failed to initialize NVML: Unknown Error\n" + _core("RuntimeError: No CUDA GPUs are available"),
        CORE_ENDED,
    ),
    "gpu-runtime-missing": Story(
        "engine",
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n',
        head="",
    ),
    "docker-down": Story(
        "engine",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n",
        head="",
    ),
    "encoding-not-loaded": Story(
        "engine",
        "(APIServer pid=1) openai_harmony.HarmonyError: error downloading or loading vocab file: failed to download or "
        "load vocab file\n",
    ),
    "encoding-missing": Story(
        "engine",
        "(APIServer pid=1) openai_harmony.HarmonyError: invalid tiktoken vocab file: /encodings/o200k_base.tiktoken: No "
        "such file or directory (os error 2)\n",
    ),
    "encoding-corrupt": Story(
        "engine",
        "(APIServer pid=1) openai_harmony.HarmonyError: hash mismatch for remote file: computed=11ab3e, "
        "expected=446a9538cb6c\n",
    ),
    "shard-truncated": Story(
        "engine",
        _core("Exception: MetadataIncompleteBuffer, path=model-00002-of-00014.safetensors size_bytes=12"),
        CORE_ENDED,
    ),
    "hub-gated": Story(
        "fetch",
        "Error: Access denied. Model 'acme/private' requires approval.\nHint: set HF_DEBUG=1 for full traceback.\n",
    ),
    "hub-not-found": Story("fetch", "Error: Model 'openai/gpt-oss-121b' not found.\nIf the repo is private, log in.\n"),
    "hub-rate-limit": Story(
        "fetch",
        "429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/openai/gpt-oss-120b\n"
        "Error: Local entry not found.\n",
    ),
    "name-not-resolved": Story(
        "fetch",
        "'[Errno -2] Name or service not known' thrown while requesting HEAD https://huggingface.co/x/resolve/main/y\n"
        "Retrying in 1s [Retry 1/5].\nError: Local entry not found. [Errno -2] Name or service not known\n",
    ),
    "xet-hang": Story("fetch", "Successfully installed hf-xet-1.5.1 huggingface_hub-2.3.0\n".replace("xet-", "xet ")),
    "no-space": Story("fetch", "OSError: [Errno 28] No space left on device: '/var/lib/tinderbox/huggingface/hub'\n"),
    "dead-pin": Story(
        "build", "#9 3.812 fatal: reference is not a tree: 7554e4a32b15929289aa80e8bc8a4e5f6f779407\n", "#9 ERROR\n"
    ),
    "commit-missing": Story("build", "#9 2.1 error: pathspec 'v9.9' did not match any file(s) known to git\n"),
    "compiler-killed": Story(
        "build",
        "#11 1502.3 FAILED: [code=137] CMakeFiles/_moe_C.dir/moe_gemm.cu.o \n#11 1502.3 /usr/local/cuda/bin/nvcc -O3\n",
        "#11 1502.9 ninja: build stopped: subcommand failed.\n",
    ),
    "build-oom-kill": Story(
        "build",
        "#11 1502.3 Killed\n#11 ERROR: executor failed running [/bin/sh -c uv build]: exit code: 137\n",
        kernel="2026-11-29T21:31:12+0000 spark-1 kernel: Out of memory: Killed process 41877 (cicc) total-vm:9127344kB, "
        "anon-rss:8022116kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:16012kB oom_score_adj:500\n",
    ),
    "git-remote-gone": Story(
        "build",
        "#6 0.546 Cloning into 'kernels'...\n#6 0.656 remote: pypi.lab has no /gone/kernels/info/refs\n"
        "#6 0.656 fatal: repository 'https://pypi.lab/gone/kernels/' not found\n",
        "#6 ERROR: executor failed running [/bin/sh -c git clone]: exit code: 128\n",
    ),
    "registry-login": Story("build", "Error response from daemon: unauthorized\n"),
    "registry-rate-limit": Story(
        "build", "Error response from daemon: toomanyrequests: You have reached your pull rate limit.\n"
    ),
    "layer-corrupted": Story(
        "build",
        "510df4767a5e: Verifying Checksum\nfilesystem layer verification failed for digest "
        "sha256:510df4767a5edf33b9d91898d4260f956776fd07dc86d7a259adf478d13d13c0\n",
    ),
    "dockerd-restarted": Story(
        "build",
        "#5 [2/4] RUN sleep 25\ncannot write /var/lib/tinderbox/images/tiny-restart-1cda58b13605/image-id because "
        "server did not provide an image ID\n",
    ),
    "pin-missing": Story(
        "build",
        "#9 1.511   ╰─▶ Because there is no version of fastsafetensors==9.9 and you require\n"
        "#9 1.511       fastsafetensors==9.9, we can conclude that your requirements are unsatisfiable.\n",
    ),
    "pull-stopped": Story("build", "failed to copy: httpReadSeeker: failed open: unexpected EOF\n"),
    "base-image-missing": Story(
        "build", "ERROR: failed to resolve source metadata for nvcr.io/nvidia/pytorch:26.01-py3: not found\n"
    ),
    "certificate-refused": Story(
        "fetch",
        "httpx.ConnectError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate in "
        "certificate chain (_ssl.c:1000)\n",
    ),
    "certificate-not-valid-now": Story(
        "fetch",
        "ERROR: Could not install: HTTPSConnectionPool(host='pypi.lab', port=443): Max retries exceeded (Caused by "
        "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate "
        "is not yet valid (_ssl.c:992)')))\n",
    ),
    "nccl-socket": Story(
        "engine",
        "spark-1:99:99 [0] NCCL INFO NET/Socket : Using [0]enp1s0f1np1:192.168.100.1<0>\n" + VLLM_LOADED + VLLM_SERVING,
    ),
    "kho": Story("kernel", _kernel("mlx5_core 0000:01:00.0: ibv_reg_mr_iova2 failed: Cannot allocate memory")),
    "nccl-init-hang": Story("engine", ""),
    "slot-power-warning": Story("machine", "GPU busy at a low clock: 96 % busy, 611 MHz, 16.2 W\n"),
    "power-held-back": Story("machine", "driver 580.142\nGPU busy at a low clock: 96 % busy, 611 MHz, 16.2 W\n"),
    "driver-590": Story("machine", "driver 590.44.01\n"),
    "memory-short": Story("machine", "driver 580.142\nmemory is short: 0.4 of 121.7 GiB available\n"),
    "swap-thrash": Story("machine", "driver 580.142\nswap is full: 0.1 of 16.0 GiB free\n"),
    "restart-loop": Story("machine", "driver 580.142\nthe unit was restarted 35 times by systemd\n"),
    "host-unreachable": Story("connection", "[spark-1] Could not connect (Error reading SSH protocol banner)\n"),
    "earlyoom-kill": Story(
        "kernel",
        "earlyoom[811]: low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%\n"
        'earlyoom[811]: sending SIGTERM to process 4711 uid 0 "VLLM::EngineCor": badness 1180, VmRSS 98211 MiB\n',
    ),
    "load-guard-stopped": Story(
        "engine",
        VLLM_HEAD
        + "load-guard: gave the page cache back: the engine loads, and little memory is free\n"
        + "load-guard: stopped the engine: it was loading, and 1.87 GiB of memory were left, less than the 2.00 GiB "
        + "without which this host stops answering\n",
        "await-ready: not ready after 61 s: the load guard stopped it, since memory ran out while it loaded\n"
        "memory-return: 110.2 GiB are available again after 4 s\n",
        head="memory-gate: 117.1 GiB are available, 92.0 GiB are needed\n",
    ),
    "memory-gate-refused": Story(
        "engine",
        "memory-gate: refused: 92.0 GiB are needed, 31.4 GiB available. Held by:\n"
        "memory-gate:   ollama (pid 4711): 3.1 GiB\nmemory-gate:   on the GPU: 4711, /usr/bin/ollama, 80100 MiB\n",
        head="",
    ),
    "another-engine": Story(
        "engine",
        "memory-gate: refused: another engine runs here, which the memory plan does not count in: "
        "vllm serve (pid 4711 in container my-vllm)\n",
        "memory-gate: stop it, or have it run as a service of the same fleet file; nothing was killed\n",
        head="",
    ),
    "memory-not-returned": Story(
        "engine",
        "memory-return: 34.2 GiB of the memory have not come back after 15 s: 80.1 GiB are available, 114.3 GiB were "
        "to be\n",
    ),
    "server-wedged": Story(
        "engine",
        VLLM_LOADED
        + VLLM_SERVING
        + "watchdog: wedged: no reply and no token counted in 3 checks over 361 s; the GPU is 96 % busy at 14.1 W\n"
        + "GPU: clock_mhz 611, power_w 14.1, temperature_c 41, utilisation_percent 96\n",
    ),
    "gpu-lost-by-reload": Story(
        "engine",
        "gpu-check: service embed is restarted: its container had lost the GPU after systemd read its units anew\n",
    ),
    "batched-tokens-too-large": Story(
        "engine",
        VLLM_LOADED + _core("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 11.25 GiB."),
        CORE_ENDED,
        head=VLLM_HEAD.replace("'max_num_batched_tokens': 8192", "'max_num_batched_tokens': 65536"),
    ),
}
"""Name of a signature → the log that shows it."""

HEADS: dict[LogSource, str] = {"engine": VLLM_HEAD, "kernel": KERNEL, "build": BUILD, "fetch": FETCH}
