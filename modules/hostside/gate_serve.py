"""The workloads `random` and `sharegpt`: `vllm bench serve` in the engine's own container."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import gate_faults
    from modules.hostside.bench_serve import DATASET, SIGN
    from modules.hostside.gate_benchy import Output, refuse
    from modules.hostside.gate_faults import Fault, fault
    from modules.hostside.progress import Progress
else:
    import gate_faults
    from bench_serve import DATASET, SIGN
    from gate_benchy import Output, refuse
    from gate_faults import fault
    from progress import Progress

PAUSE_S = 0.5
# An answer in a chat may end early by itself; random prompts are answered by exactly what was asked for.
LEAST_SHARE = 0.5
SPARE = 1.3
_BETWEEN = re.compile(r"[\s,\[]*")


def conversations(path: Path, sha256: str, count: int, seed: int) -> list[dict[str, Any]]:
    """So many conversations, chosen and marked by `seed`: no prefix cache has seen a prompt that begins so."""
    try:
        with path.open("rb") as file:
            seen = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise refuse(f"the dataset could not be read: {error}") from None
    if seen != sha256:
        raise refuse(f"{path} is not the dataset that was asked for: its sha256 is another one")
    chance = random.Random(seed)  # noqa: S311, nothing secret
    chosen: list[dict[str, Any]] = []
    for number, one in enumerate(one for one in entries(path) if len(one.get("conversations") or ()) > 1):
        # Each has the same chance, and no more of them are in memory than are wanted.
        place = number if number < count else chance.randrange(number + 1)
        if place < count:
            chosen[place : place + 1] = [one]
    # More than there are: the same questions again, each with another mark.
    chosen += [chance.choice(chosen) for _ in range(count - len(chosen))] if chosen else []
    return [{**one, "conversations": _marked(one["conversations"], chance)} for one in chosen]


def entries(path: Path, chunk: int = 1 << 20) -> Iterator[dict[str, Any]]:
    """Each object of a list in a file. The published one has 670 MB, and the host's memory is the engine's."""
    decoder, text, at = json.JSONDecoder(), "", 0
    with path.open(encoding="utf-8") as file:
        while new := file.read(chunk):
            text, at = text[at:] + new, 0
            while True:
                at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
                try:
                    found, at = decoder.raw_decode(text, at)
                except ValueError:  # its rest is not read yet
                    break
                yield found


def _marked(turns: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    first, *rest = turns
    return [{**first, "value": f"[{chance.getrandbits(48):012x}] {first['value']}"}, *rest]


def serve_arguments(kind: str, options: argparse.Namespace, workload: dict[str, Any]) -> list[str]:
    """The arguments of `vllm bench serve`."""
    words = ["--base-url", options.url, "--model", options.model_path, "--served-model-name", options.served_as]
    words += ["--tokenizer", options.model_path, "--num-prompts", str(workload["prompts"])]
    words += ["--max-concurrency", str(workload["concurrency"]), "--percentile-metrics", "ttft,tpot,itl,e2el"]
    words += ["--metric-percentiles", "50,90,99", "--disable-tqdm", "--save-detailed"]
    words += ["--request-rate", str(workload["rate"])] if workload["rate"] is not None else []
    if kind == "random":
        words += ["--backend", "vllm", "--endpoint", "/v1/completions", "--dataset-name", "random", "--ignore-eos"]
        return [*words, "--random-input-len", str(workload["input"]), "--random-output-len", str(workload["output"])]
    words += ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
    words += ["--dataset-name", "sharegpt", "--dataset-path", str(DATASET)]
    return words + (["--sharegpt-output-len", str(workload["output"])] if workload["output"] is not None else [])


def request_of(kind: str, options: argparse.Namespace, workload: dict[str, Any], runs: int) -> dict[str, Any]:
    """What `bench_serve.py` reads."""
    seeds = [int.from_bytes(os.urandom(3), "big") for _ in range(runs)]
    dataset = None
    if kind == "sharegpt":
        path = options.datasets / f"{workload['dataset']['sha256']}.json"
        # Some more, since it leaves out what is too short or too long, and would ask the others twice.
        count = math.ceil(SPARE * workload["prompts"])
        dataset = conversations(path, workload["dataset"]["sha256"], count, seeds[0])
    return {
        "argv": serve_arguments(kind, options, workload),
        "seeds": seeds,
        "time_cap_s": workload.get("time_cap_s"),
        "dataset": dataset,
        "key_variable": options.key_variable,
    }


def run_serve(kind: str, options: argparse.Namespace, runs: int, limit_s: float, progress: Progress) -> dict[str, Any]:
    """Run it to its end. Returns what is kept of it."""
    workload = options.gate[kind]
    request = request_of(kind, options, workload, runs)
    program = Path(__file__).with_name("bench_serve.py").read_text(encoding="utf-8")
    command = ["docker", "exec", "--interactive", options.container, "python", "-c", program]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    threading.Thread(target=_fed, args=(process, json.dumps(request)), daemon=True).start()
    output = Output(process)
    output.start()
    began, faults = time.monotonic(), []
    while process.poll() is None:
        passed = time.monotonic() - began
        if passed > limit_s:
            process.kill()
            faults = [fault(gate_faults.OUT_OF_TIME, kind, f"the time limit of {limit_s:.0f} s has passed")]
            break
        progress.report(f"{kind}, {workload['concurrency']} at once", min(passed, limit_s), limit_s, "seconds")
        time.sleep(PAUSE_S)
    output.join(timeout=10)
    results = _results(output.lines)
    if results is None and not faults:
        faults = [_ended_badly(kind, output.lines)]
    return {
        "command": ["vllm", "bench", "serve", *request["argv"]],
        "prompts": "unique (random tokens)" if kind == "random" else "unique (a mark at the beginning of each)",
        "runs": runs,
        "seeds": request["seeds"],
        "results": [_with_cap(one) for one in results or []],
        "requests": sum(one["completed"] for one in results or []),
        "generated_tokens": sum(one["total_output_tokens"] for one in results or []),
        "longest_pause_s": round(max((one["longest_pause_s"] or 0.0 for one in results or []), default=0.0), 3),
        "faults": faults or _once([one for result in results or [] for one in serve_faults(kind, result, workload)]),
    }


def _once(faults: list[Fault]) -> list[Fault]:
    """The first of each kind."""
    found: dict[str, Fault] = {}
    for one in faults:
        found.setdefault(one["kind"], one)
    return list(found.values())


def _with_cap(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "hit_time_cap": result["not_sent"] > 0}


def _fed(process: subprocess.Popen[str], text: str) -> None:
    try:
        if process.stdin is not None:
            process.stdin.write(text)
            process.stdin.close()
    except OSError:  # it has ended; its output says why
        return


def _results(lines: list[str]) -> list[dict[str, Any]] | None:
    line = next((line for line in reversed(lines) if line.startswith(SIGN)), None)
    found: list[dict[str, Any]] | None = None if line is None else json.loads(line.removeprefix(SIGN))
    return found


def _ended_badly(kind: str, lines: list[str]) -> Fault:
    sign = "Initial test run failed"
    line = next((line for line in reversed(lines) if sign in line), None)
    if line is None:
        raise refuse("vllm bench serve ended without a result; its output is above")
    return fault(gate_faults.FAILED, kind, line.strip()[-300:])


def serve_faults(kind: str, result: dict[str, Any], workload: dict[str, Any]) -> list[Fault]:
    """Why a run measures nothing."""
    sent = result["completed"] + result["failed"]
    found = []
    if result["failed"]:
        told = f"{result['failed']} of {sent} requests failed, the first with: {result['first_error']}"
        found.append(fault(gate_faults.FAILED, kind, told))
    elif not result["completed"]:
        found.append(fault(gate_faults.NONE, kind, "no request was done"))
    elif sent + result["not_sent"] < workload["prompts"]:
        told = f"{sent} of {workload['prompts']} requests are accounted for"
        found.append(fault(gate_faults.FAILED, kind, told))
    elif kind == "random" and (result["fewest_tokens"] or 0) < LEAST_SHARE * workload["output"]:
        told = f"a request brought {result['fewest_tokens']} of the {workload['output']} tokens that it asked for"
        found.append(fault(gate_faults.TOO_FEW, kind, told))
    if result["completed"] and result["empty"]:
        found.append(fault(gate_faults.EMPTY, kind, f"{result['empty']} replies had no content"))
    if result["one_piece"]:
        found.append(fault(gate_faults.NOT_STREAMED, kind, f"{result['one_piece']} replies came in one piece"))
    if (result["longest_pause_s"] or 0.0) > workload["longest_pause_s"]:
        told = f"a stream stood still for {result['longest_pause_s']:.1f} s"
        found.append(fault(gate_faults.STALLED, kind, told))
    return found
