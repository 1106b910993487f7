"""The command line of a workload, without the addresses, paths and keys of the host that runs it."""

from __future__ import annotations

import shlex

from modules.spec.gate import HOST, BenchyWorkload


def workload_command(workload: BenchyWorkload, repository: str, served_as: str, client: str = HOST) -> str:
    """What one would type to measure the same; `--base-url` and what is the host's own are left out."""
    words = ["llama-benchy", "--model", repository, "--served-model-name", served_as]
    for flag in ("pp", "tg", "depth", "concurrency"):
        words += [f"--{flag}", *map(str, getattr(workload, flag))]
    words += ["--runs", str(workload.runs), "--exact-tg", "--no-cache", "--latency-mode", workload.latency_mode]
    words += [] if workload.coherence else ["--skip-coherence"]
    return shlex.join(words) + ("" if client == HOST else "  # from the controller, over an SSH tunnel")
