"""The real program `run_gate.py`, with its real client, against a fake engine on this machine."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modules.catalog import load_catalog
from modules.gating.decision import Decision, decide
from modules.gating.explain import Case, Cause, explain
from modules.gating.identity import workload_id, workloads
from modules.gating.metrics import Measurement
from modules.gating.parts import measurement_of_parts
from modules.gating.references import References
from modules.lab.layout import ROOT
from modules.spec.answers import Answers
from modules.spec.gate import Gate
from tests.lab.fake_engine import write_tokenizer

_HOSTSIDE = ROOT / "modules" / "hostside"
_PROGRAM = """#!/bin/sh
case "$0 $*" in
*InactiveExit*) echo 'InactiveExitTimestamp=@1000\nActiveEnterTimestamp=@1060' ;;
*systemctl*) cat {state} ;;
*nvidia-smi*name,driver*) echo 'NVIDIA GB10 (simulated), 580.95.05, 12.1' ;;
*nvidia-smi*clocks*)
    # The next line with each look, and the last one ever after.
    looks=$(($(cat {gpu}.looks 2>/dev/null || echo 0) + 1))
    echo "$looks" >{gpu}.looks
    head -n "$looks" {gpu} | tail -n 1
    ;;
*nvidia-smi*compute-apps*) cat {gpu}.processes ;;
esac
"""
# Clock, power, temperature and use of a good Spark.
HEALTHY = "2418, 42.0, 60, 95"
ANSWERS = Answers.model_validate(
    {
        "questions": {
            "arithmetic": {"prompt": "What is 17 * 23?", "contains": ["391"]},
            "copying": {"prompt": "Repeat {fresh}", "contains": ["{fresh}"]},
            "counting": {"prompt": "Tell a story of {fresh}.", "exact_tokens": 24},
        },
        "source": "tests",
    }
)


@functools.cache
def tools() -> Path:
    """`bin` of an environment with the hosts' locked tools, made once and kept in the lab's folder."""
    lock = _HOSTSIDE / "tools.lock"
    folder = ROOT / ".lab" / f"tools-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
        (folder / "complete").touch()
    return folder / "bin"


@dataclass
class Gated:
    """What came of a gate. `log`: what the program said."""

    measured: Measurement
    decision: Decision
    causes: tuple[Cause, ...]
    stored: dict[str, Any]
    log: str


class FakeHost:
    """A host's state in a folder: a ledger with one release, a systemd that says what it is told."""

    def __init__(self, folder: Path, gate: Gate, answers: Answers | None = ANSWERS) -> None:
        self.gate, self.answers, self._folder = gate, answers, folder
        self._unit, self.state = folder / "unit", folder / "state"
        self._gpu = folder / "gpu"
        self.say("active", "running", restarts=0)
        self.show(HEALTHY)
        bin_ = folder / "bin"
        bin_.mkdir()
        for name in ("systemctl", "nvidia-smi", "journalctl", "docker"):
            (bin_ / name).write_text(_PROGRAM.format(state=self._unit, gpu=self._gpu))
            (bin_ / name).chmod(0o755)
        ledger = folder / "state" / "ledger" / "svc"
        ledger.mkdir(parents=True)
        (ledger / "current").symlink_to("r1.json")
        self.tokenizer = write_tokenizer(folder / "tokenizer")

    def say(self, active: str, sub: str, *, restarts: int) -> None:
        """What systemd says of the unit from now on."""
        fresh = self._unit.with_suffix(".new")
        result = "success" if active == "active" else "exit-code"
        lines = [f"ActiveState={active}", f"SubState={sub}", f"Result={result}", f"NRestarts={restarts}"]
        fresh.write_text("\n".join([*lines, "InvocationID=0123", "Job=0"]) + "\n")
        fresh.rename(self._unit)

    def show(self, *samples: str, processes: tuple[int, ...] = ()) -> None:
        """What nvidia-smi tells from now on: one sample (clock, power, temperature, use) a look, and processes."""
        self._gpu.write_text("".join(f"{one}\n" for one in samples))
        self._gpu.with_suffix(".processes").write_text("".join(f"{one}\n" for one in processes))

    def program(self, url: str, runs: dict[str, int], *more: str) -> tuple[list[str], dict[str, str]]:
        """Command line and environment of the program."""
        options = {
            "service": "svc", "release": "r1", "url": url, "model": "fake/fake", "served-as": "fake",
            "gate": json.dumps(workloads(self.gate, self.answers)), "measure": json.dumps(runs),
            "workload-id": workload_id(self.gate, self.answers), "tokenizer": str(self.tokenizer),
            "state": str(self._folder / "state"), "budget": "600",
            # Questions are asked without any tool.
            "tools": str(tools() if "benchy" in runs else self._folder),
        }  # fmt: skip
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        path = f"{self._folder / 'bin'}:{os.environ['PATH']}"
        return [sys.executable, str(_HOSTSIDE / "run_gate.py"), *words, *more], {**os.environ, "PATH": path}

    def measure(self, url: str, runs: dict[str, int], *, append: bool = False) -> str:
        """Run the program; returns what it said. Fails the test when it has no result."""
        words, environment = self.program(url, runs, *(["--append"] if append else []))
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    @property
    def stored(self) -> dict[str, Any]:
        """The result on the host."""
        found: dict[str, Any] = json.loads((self._folder / "state" / "gates" / "svc" / "r1.json").read_text())
        return found

    def gated(self, url: str, references: References | None = None) -> Gated:
        """The whole of a gate: measure, judge, and measure more as long as it asks for more."""
        runs = {kind: self.gate.runs().get(kind, 1) for kind in self.gate.kinds()}
        log, append = "", False
        while True:
            log += self.measure(url, runs, append=append)
            measured = measurement_of_parts(self.gate, self.stored["parts"], self.stored["faults"])
            decision = decide(self.gate, measured, references or References())
            if decision.settled:
                break
            runs, append = dict(decision.more), True
        case = Case(
            "fake", 1, measured.metrics, tuple(line.metric for line in decision.judgement.lines),
            telemetry=self.stored["samples"], faults=measured.faults,
        )  # fmt: skip
        return Gated(measured, decision, explain(case, load_catalog().explanations), self.stored, log)
