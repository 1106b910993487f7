"""What the keys of recipes mean, and how their programs make flags of them."""

from __future__ import annotations

# What tells of a recipe and is for people, or is what every service of ours has anyway.
SAID = frozenset(
    {"recipe_version", "name", "description", "maintainer", "metadata", "benchmark", "notes", "context", "author"}
    | {"version", "tags", "runtime_version", "engine_version"}
)
# What these keys do beside starting a server, and where ours has a place for it.
NOT_CARRIED = {
    "mods": "mods are shell scripts that change the image when it starts: build an image that has them (image.recipe)",
    "patches": "patches change the image when it starts: build an image that has them (image.recipe)",
    "pre_exec": "commands before the server: build an image that has done them (image.recipe)",
    "post_exec": "commands in the container after the server",
    "post_commands": "commands on this machine after the server",
    "stop_after_post": "a server that ends by itself",
    "build_args": "the image is built by a script of their project with these arguments",
    "builder": "the image is built by a plugin of their project",
    "builder_config": "the image is built by a plugin of their project",
    "executor_config": "how the container runs is the engine's here: see services.<name>.container",
    "volumes": "folders of their machine in the container: weights come from weights.home here",
    "variants": "other settings of the same recipe: a group each in a fleet file",
    "runtime_config": "settings of their program",
    "distribution_config": "how files get to the hosts: weights.spread and image.builder here",
    "draft_model": "named beside the command: what the command says of it is carried over",
}
# How each of spark-pulse's engines calls its neutral parameters (spark_pulse/engines/defaults/*.yaml).
PULSE = {
    "vllm": {
        "port": "--port",
        "host": "--host",
        "tensor_parallel": "--tensor-parallel-size",
        "pipeline_parallel": "--pipeline-parallel-size",
        "gpu_memory_utilization": "--gpu-memory-utilization",
        "max_model_len": "--max-model-len",
        "max_num_batched_tokens": "--max-num-batched-tokens",
        "max_num_seqs": "--max-num-seqs",
    },
    "sglang": {
        "port": "--port",
        "host": "--host",
        "tensor_parallel": "--tp",
        "pipeline_parallel": "--pp-size",
        "gpu_memory_utilization": "--mem-fraction-static",
        "max_model_len": "--context-length",
        "max_num_seqs": "--max-running-requests",
    },
    "llama-cpp": {"port": "--port", "host": "--host", "max_model_len": "--ctx-size", "max_num_seqs": "--parallel"},
}
# What sparkrun makes of a recipe's defaults where that has no command (runtimes/_vllm_common.py, sglang.py, 0.3).
SPARKRUN = {
    "vllm": PULSE["vllm"]
    | {
        "served_model_name": "--served-model-name",
        "dtype": "--dtype",
        "quantization": "--quantization",
        "kv_cache_dtype": "--kv-cache-dtype",
        "data_parallel": "--data-parallel-size",
        "enforce_eager": "--enforce-eager",
        "enable_prefix_caching": "--enable-prefix-caching",
        "trust_remote_code": "--trust-remote-code",
        "enable_auto_tool_choice": "--enable-auto-tool-choice",
    },
    "sglang": PULSE["sglang"]
    | {
        "served_model_name": "--served-model-name",
        "dtype": "--dtype",
        "quantization": "--quantization",
        "kv_cache_dtype": "--kv-cache-dtype",
        "trust_remote_code": "--trust-remote-code",
    },
}
TASKS = {"embedding": "embed", "embeddings": "embed", "reranker": "rerank", "rerank": "rerank"}


CARRIED = frozenset(
    {"model", "model_revision", "command", "args", "image", "container", "defaults", "env", "runtime", "mode"}
    | {"min_nodes", "max_nodes", "solo_only", "cluster_only", "engine", "engines", "params", "constraints", "serves"}
)
