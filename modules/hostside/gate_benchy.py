"""The workload `benchy`: llama-benchy's matrix, run by the hosts' own tools."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import gate_faults
    from modules.hostside.benchy_events import WORKLOAD, Requests
    from modules.hostside.gate_faults import Fault, fault
    from modules.hostside.progress import Progress
    from modules.hostside.prompts import prose
else:
    import gate_faults
    from benchy_events import WORKLOAD, Requests
    from gate_faults import fault
    from progress import Progress
    from prompts import prose

# llama-benchy only takes a book by URL, but looks first in its cache, where a file is named by the URL's hash.
BOOK = "tinderbox:prompts"
WRONG_TOKENIZER = "Falling back to 'gpt2' tokenizer"
PAUSE_S = 0.2


def refuse(reason: str) -> SystemExit:
    """End the job; the reason is the last line of its log."""
    return SystemExit(f"not measured: {reason}")


def stage_book(home: Path, workload: dict[str, Any], seed: int) -> None:
    """Put a text into llama-benchy's cache, several times as long as the longest prompt, which can start anywhere."""
    longest = max(workload["pp"]) + max(workload["depth"])
    cache = home / ".cache" / "llama-benchy"
    cache.mkdir(parents=True)
    name = hashlib.md5(BOOK.encode(), usedforsecurity=False).hexdigest()
    (cache / f"{name}.txt").write_text(prose(max(50_000, 4 * longest), seed), encoding="utf-8")


def benchy_arguments(
    options: argparse.Namespace, workload: dict[str, Any], runs: int, report: Path, events: Path
) -> list[str]:
    """llama-benchy's arguments, without the key."""
    words = ["--base-url", f"{options.url}/v1", "--model", options.model, "--served-model-name", options.served_as]
    words += ["--tokenizer", str(options.tokenizer), "--book-url", BOOK]
    for flag in ("pp", "tg", "depth", "concurrency"):
        words += [f"--{flag}", *map(str, workload[flag])]
    words += ["--runs", str(runs), "--exact-tg", "--no-cache", "--latency-mode", workload["latency_mode"]]
    words += [] if workload["coherence"] else ["--skip-coherence"]
    words += ["--no-results-on-fail", "--save-result", str(report), "--format", "json", "--emit-progress", str(events)]
    return words


def environment(home: Path) -> dict[str, str]:
    """Nothing of it goes out, and nothing of it through a proxy."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    return kept | offline | {"HOME": str(home), "NO_PROXY": "*", "PYTHONUNBUFFERED": "1", "LC_ALL": "C.UTF-8"}


class Output(threading.Thread):
    """Passes a program's output on to the job's log, and keeps it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.lines: list[str] = []

    def run(self) -> None:  # noqa: D102
        for line in self._process.stdout or ():
            self.lines.append(line.rstrip("\n"))
            print(self.lines[-1], flush=True)


def ended_badly(lines: list[str], code: int) -> Fault:
    """The fault of a llama-benchy that gave up before it measured; refuses where the fault may be its own."""
    for sign, kind in (("Warmup failed", gate_faults.FAILED), ("Coherence test FAILED", gate_faults.WRONG)):
        line = next((line for line in lines if sign in line), None)
        if line is not None:
            return fault(kind, WORKLOAD, line.strip()[:300])
    raise refuse(f"llama-benchy ended with {code}; its output is above")


def run_benchy(
    options: argparse.Namespace, workload: dict[str, Any], runs: int, limit_s: float, progress: Progress
) -> dict[str, Any]:
    """Run it to its end. Returns what is kept of it: the report (None where there are faults), and those."""
    seed = int.from_bytes(os.urandom(4), "big")
    with tempfile.TemporaryDirectory(prefix="tinderbox-gate-") as folder:
        home = Path(folder)
        report, events = home / "report.json", home / "events.jsonl"
        stage_book(home, workload, seed)
        arguments = benchy_arguments(options, workload, runs, report, events)
        command = [str(options.tools / "llama-benchy"), *arguments]
        hidden = [str(options.tools / "python"), str(Path(__file__).with_name("benchy.py")), str(options.secret_file)]
        process = subprocess.Popen(
            [*hidden, options.key_variable, *arguments] if options.secret_file else command,
            env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        requests = Requests(events, workload, runs)
        faults = _watched(process, requests, limit_s, progress)
        result = json.loads(report.read_text(encoding="utf-8")) if not faults and report.exists() else None
    if result is None and not faults:
        raise refuse("llama-benchy wrote no report; its output is above")
    return {
        "command": command,
        "prompts": f"unique (text of seed {seed}, and a random suffix each)",
        "prompt_seed": seed,
        "runs": runs,
        "report": result,
        "requests": requests.total,
        "generated_tokens": requests.generated,
        "longest_pause_s": round(requests.longest_pause_s(), 3),
        "faults": faults,
    }


def _watched(process: subprocess.Popen[str], requests: Requests, limit_s: float, progress: Progress) -> list[Fault]:
    output = Output(process)
    output.start()
    deadline = time.monotonic() + limit_s
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            told = f"the time limit of {limit_s:.0f} s has passed at {requests.step}, {requests.ended} requests done"
            return [fault(gate_faults.OUT_OF_TIME, WORKLOAD, told)]
        requests.read()
        progress.report(requests.step, requests.ended, requests.total, "requests")
        time.sleep(PAUSE_S)
    output.join()
    requests.read()
    if any(WRONG_TOKENIZER in line for line in output.lines):
        raise refuse("llama-benchy could not load the model's tokenizer, so its token counts are another model's")
    if process.returncode != 0 and not requests.errors:
        return [ended_badly(output.lines, process.returncode)]
    return requests.faults()
