"""What the gate's client sees of 1024 concurrent streams, beside what the server really sends."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.result import Result
from benchmarks.stream_clients import ROOT, Client, ClientError, Task, llama_benchy, plain, vllm_bench_serve

STREAMS = 1024
# Tokens a second of each stream. 4 make 4096 in all; the highest that was ever published for a DGX Spark is 3072
# (baseline vllm-mxfp4-many-chunks, peak).
RATE = 4.0
FASTER = (8.0, 16.0)
# Begin and end of a run are seen some ms late, which over so long a time is nothing.
SECONDS, SECONDS_FASTER = 25.0, 15.0
RUNS = 3
LOSS = 0.02

CLIENTS: dict[str, Client] = {
    "llama-benchy": llama_benchy,
    "vllm bench serve": vllm_bench_serve,
    "plain aiohttp": plain,
}
OURS = "llama-benchy"


def gate_client() -> Result:
    """Rate seen over rate sent at 1024 streams, for the gate's client and the better of two others.

    `details`: each client's share at 4096 tokens/s, and the highest rate at which it still loses no more than 2 %.
    """
    # Each end of every stream is an open file; children inherit the limit.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    shares = {name: share_seen(client, RATE) for name, client in CLIENTS.items()}
    details = {f"{name}: seen over sent": share for name, share in shares.items()}
    details |= {f"{name}: highest tok/s": highest(CLIENTS[name], shares[name]) for name in CLIENTS}
    peer = max(share for name, share in shares.items() if name != OURS)
    return Result(
        ours=shares[OURS],
        peer=peer,
        ratio=shares[OURS],
        unit="seen/sent",
        workload=f"{STREAMS} streams at {STREAMS * RATE:.0f} tok/s in all, middle of {RUNS} runs after one discarded",
        commands=(f"llama-benchy --concurrency {STREAMS}", f"vllm bench serve --max-concurrency {STREAMS}"),
        details=details,
    )


def share_seen(client: Client, rate: float, runs: int = RUNS, seconds: float = SECONDS) -> float:
    """Rate seen over rate sent, the middle one of the runs."""
    tokens = round(rate * seconds)
    with tempfile.TemporaryDirectory() as folder, serving(rate) as url:
        seen = client(Task(url, STREAMS, tokens, runs, Path(folder)))
        with urllib.request.urlopen(f"{url}/sent") as answer:  # noqa: S310, our own server
            batches = json.load(answer)
    sent = [batch["rate"] for batch in batches if batch["tokens"] == STREAMS * tokens][1:]
    if len(seen) != runs or len(sent) != runs:
        raise ClientError(f"{len(seen)} runs were seen and {len(sent)} sent, in place of {runs}")
    shares: list[float] = [ours / theirs for ours, theirs in zip(seen, sent, strict=True)]
    return statistics.median(shares)


def highest(client: Client, share: float) -> float:
    """Tokens a second, of those tried, at which the client loses no more than 2 %."""
    best = STREAMS * RATE if share >= 1 - LOSS else 0.0
    for rate in FASTER if best else ():
        if share_seen(client, rate, runs=1, seconds=SECONDS_FASTER) < 1 - LOSS:
            break
        best = STREAMS * rate
    return best


@contextmanager
def serving(rate: float) -> Iterator[str]:
    """The server's URL, while it runs."""
    command = [sys.executable, "-m", "benchmarks.token_server", "--rate", str(rate)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()
