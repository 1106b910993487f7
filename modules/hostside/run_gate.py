"""Measure a service from its client's side with llama-benchy, and keep what came out with all that judging it needs.

Runs as a job. The result lands in one step, and only when the very server that was there at the beginning was there
at the end, and when every request brought the tokens that it asked for.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import write_json
    from modules.hostside.benchy_events import Requests
    from modules.hostside.gpu_sample import gpu, sample
    from modules.hostside.ledger import STATE, Ledger, now
    from modules.hostside.progress import Progress
    from modules.hostside.prompts import prose
    from modules.hostside.service_unit import READY, UNDERWAY, start_outcome, unit_name, unit_state
else:
    from atomic import write_json
    from benchy_events import Requests
    from gpu_sample import gpu, sample
    from ledger import STATE, Ledger, now
    from progress import Progress
    from prompts import prose
    from service_unit import READY, UNDERWAY, start_outcome, unit_name, unit_state

TOOLS = Path("/var/lib/tinderbox/tools/current/bin")
# llama-benchy only takes a book by URL, but looks first in its cache, where a file is named by the URL's hash.
BOOK = "tinderbox:prompts"
WRONG_TOKENIZER = "Falling back to 'gpt2' tokenizer"
PAUSE_S = 1.0


def refuse(reason: str) -> SystemExit:
    """End the job; the reason is the last line of its log."""
    return SystemExit(f"not measured: {reason}")


def wait_until_ready(service: str, release: str, wait_s: float, progress: Progress) -> str:
    """The id of the running start, once the release serves."""
    deadline = time.monotonic() + wait_s
    while True:
        current = Ledger(service).linked("current")
        if current != release:
            raise refuse(f"the host's current release is {current}, not {release}")
        unit = unit_state(unit_name(service))
        outcome = start_outcome(unit, int(unit.get("NRestarts") or 0))
        if outcome == READY:
            return unit["InvocationID"]
        if outcome != UNDERWAY or time.monotonic() > deadline:
            raise refuse(f"{unit_name(service)} is {unit.get('ActiveState')} ({unit.get('Result')})")
        progress.report("waiting for the server")
        time.sleep(PAUSE_S)


def stage_book(home: Path, workload: dict[str, Any], seed: int) -> None:
    """Put a text into llama-benchy's cache, several times as long as the longest prompt, which can start anywhere."""
    longest = max(workload["pp"]) + max(workload["depth"])
    cache = home / ".cache" / "llama-benchy"
    cache.mkdir(parents=True)
    name = hashlib.md5(BOOK.encode(), usedforsecurity=False).hexdigest()
    (cache / f"{name}.txt").write_text(prose(max(50_000, 4 * longest), seed), encoding="utf-8")


def benchy_arguments(options: argparse.Namespace, workload: dict[str, Any], report: Path, events: Path) -> list[str]:
    """llama-benchy's arguments, without the key."""
    words = ["--base-url", f"{options.url}/v1", "--model", options.model, "--served-model-name", options.served_as]
    words += ["--tokenizer", str(options.tokenizer), "--book-url", BOOK]
    for flag in ("pp", "tg", "depth", "concurrency"):
        words += [f"--{flag}", *map(str, workload[flag])]
    words += ["--runs", str(workload["runs"]), "--exact-tg", "--no-cache", "--latency-mode", workload["latency_mode"]]
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


def measure(
    command: list[str], home: Path, requests: Requests, time_limit_s: float, progress: Progress
) -> dict[str, Any]:
    """Run llama-benchy to its end. Returns the GPU's samples, one a second, by field."""
    process = subprocess.Popen(
        command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    output = Output(process)
    output.start()
    samples: list[dict[str, float | None]] = []
    deadline = time.monotonic() + time_limit_s
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            raise refuse(f"the workload's time limit of {time_limit_s:.0f} s has passed at {requests.step}")
        requests.read()
        progress.report(requests.step, len(requests.got), requests.total, "requests")
        taken = sample()
        samples += [taken] if taken else []
        time.sleep(PAUSE_S)
    output.join()
    requests.read()
    if any(WRONG_TOKENIZER in line for line in output.lines):
        raise refuse("llama-benchy could not load the model's tokenizer, so its token counts are another model's")
    if process.returncode != 0:
        raise refuse(f"llama-benchy ended with {process.returncode}; its output is above")
    complaint = requests.complaint()
    if complaint:
        raise refuse(complaint)
    return {field: [one[field] for one in samples] for field in (samples[0] if samples else {})}


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("service", "release", "url", "model", "served-as", "workload", "workload-id"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--tokenizer", type=Path, required=True, help="directory with the model's tokenizer.json")
    parser.add_argument("--wait", type=float, default=60.0, help="seconds for a start that is under way")
    parser.add_argument("--secret-file")
    parser.add_argument("--key-variable")
    return parser.parse_args(arguments)


def main() -> int:
    """0 when there is a result."""
    options = parsed(sys.argv[1:])
    workload, progress = json.loads(options.workload), Progress()
    started_at, invocation = now(), wait_until_ready(options.service, options.release, options.wait, progress)
    seed = int.from_bytes(os.urandom(4), "big")
    with tempfile.TemporaryDirectory(prefix="tinderbox-gate-") as folder:
        home = Path(folder)
        report, events = home / "report.json", home / "events.jsonl"
        stage_book(home, workload, seed)
        arguments = benchy_arguments(options, workload, report, events)
        command = [str(TOOLS / "llama-benchy"), *arguments]
        hidden = [str(TOOLS / "python"), str(Path(__file__).with_name("benchy.py")), options.secret_file]
        run = [*hidden, options.key_variable, *arguments] if options.secret_file else command
        samples = measure(run, home, Requests(events, workload), workload["time_limit_s"], progress)
        result = json.loads(report.read_text(encoding="utf-8"))
    unit = unit_state(unit_name(options.service))
    if unit.get("InvocationID") != invocation or unit.get("ActiveState") != "active":
        raise refuse("the server was restarted while it was measured")
    document = {
        "service": options.service,
        "release": options.release,
        "workload_id": options.workload_id,
        "workload": workload,
        "command": command,
        "prompt_seed": seed,
        "started": started_at,
        "finished": now(),
        "gpu": gpu(),
        "samples": samples,
        "report": result,
    }
    path = STATE / "gates" / options.service / f"{options.release}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, document)
    print(f"measured; result in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
