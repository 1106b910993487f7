"""Import what a server that starts imports, so that its bytecode is in the image, and prove that it can run here.

A server that finds its bytecode is ready in a third of the time.
"""

import importlib

for module in (
    "vllm.entrypoints.cli.main",
    "vllm.entrypoints.openai.api_server",
    "vllm.v1.engine.core",
    "vllm.v1.worker.cpu_worker",
    "vllm.model_executor.models.gpt_oss",
    "transformers.models.gpt_oss.modeling_gpt_oss",
):
    importlib.import_module(module)

import torch  # noqa: E402
from vllm.platforms import current_platform  # noqa: E402

if not current_platform.is_cpu():
    raise SystemExit(f"vLLM takes this for {current_platform.device_name}, not for a CPU")
if not hasattr(torch.ops._C, "rms_norm"):
    raise SystemExit("vLLM's compiled operations were not loaded: the lines above say which library is missing")
