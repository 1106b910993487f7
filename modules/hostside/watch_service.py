"""Watch a service that is ready: does it still generate? Runs as long as its unit is active, beside it.

    watch_service.py --service NAME --url URL --model NAME --every SECONDS --checks N [--secret-file F --key-variable V]

An engine whose scheduler has died goes on answering `/health`, and its GPU can show 96 % at little power. So a few
tokens are asked for at a low rate. A server that is slow because it works counts its tokens on (`/metrics`): only where
neither a reply comes nor a counter moves, in N checks one after the other, it is wedged. Then what tells why is kept
beside the ledger, the ledger tells it, and the engine is killed: its unit fails by that, and systemd starts it again
within the bound of its starts, or leaves it failed.

It asks nothing while a gate measures the service, and does nothing while another program starts or stops it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import engine_sample, gpu_sample
    from modules.hostside.activation import BusyError, alone
    from modules.hostside.ask_model import GENERATE, TASKS, answer, question
    from modules.hostside.ask_server import Endpoint, NotReady, read_secret, reply_tokens
    from modules.hostside.atomic import write_text
    from modules.hostside.ledger import Ledger
    from modules.hostside.masking import masked_lines
    from modules.hostside.release_story import RESTARTED
    from modules.hostside.service_unit import journal, run, unit_name, unit_state
    from modules.hostside.watch_note import note_check
else:
    import engine_sample
    import gpu_sample
    from activation import BusyError, alone
    from ask_model import GENERATE, TASKS, answer, question
    from ask_server import Endpoint, NotReady, read_secret, reply_tokens
    from atomic import write_text
    from ledger import Ledger
    from masking import masked_lines
    from release_story import RESTARTED
    from service_unit import journal, run, unit_name, unit_state
    from watch_note import note_check

MARK = "watchdog: "
BY = "watchdog"
_TOKENS = 4
_COUNTED = ("prompt_tokens", "generation_tokens")
_MEMORY = ("MemTotal", "MemFree", "MemAvailable", "SwapFree")
# A container that can not be killed in this time will not be.
_KILL_S = 60
Counts = dict[str, float | None]


@dataclass
class Watch:
    """What decides. `answers`: whether a few tokens came; `counts`: the engine's counters; `pauses`: not now."""

    answers: Callable[[], bool]
    counts: Callable[[], Counts]
    pauses: Callable[[], bool]
    checks: int
    misses: int = 0
    before: Counts = field(default_factory=dict)

    def wedged(self) -> bool:
        """One check. True once so many have shown neither a reply nor progress, one after the other."""
        if self.pauses():
            self.misses = 0
            return False
        self.before = self.before if self.misses else self.counts()
        if self.answers() or self._progress():
            self.misses = 0
            return False
        self.misses += 1
        say(f"no reply, and no token counted ({self.misses} of {self.checks})")
        return self.misses >= self.checks

    def _progress(self) -> bool:
        """Whether a counter has moved since the last look; an engine without counters shows none."""
        before, self.before = self.before, self.counts()
        moved = (self.before.get(name) != before.get(name) for name in _COUNTED if before.get(name) is not None)
        return any(moved)


def answers(endpoint: Endpoint, timeout: float, task: str = GENERATE) -> bool:
    """Whether the engine does its work. One that refuses the request is alive, which is all that is asked here."""
    path = "/v1/chat/completions"
    body: dict[str, object] = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": "Hi."}],
        "max_tokens": _TOKENS,
    }
    if task != GENERATE:
        path, body = question(task, endpoint.model)
    try:
        status, reply = endpoint.ask("POST", path, body, timeout)
    except NotReady:
        return False
    if status != 200:
        return 400 <= status < 500
    return reply_tokens(reply) if task == GENERATE else bool(answer(task, reply))


def measured(service: str) -> bool:
    """Whether a gate measures the service: its figures are not to be of two clients."""
    shown = run("systemctl", "list-units", "--no-legend", "--plain", f"tinderbox-job-gate-{service}-*.service")
    return any("running" in line.split() for line in (shown or "").splitlines())


def evidence(unit: str, told: str) -> list[str]:
    """What tells why, as the host shows it now: memory, GPU, and the server's log. Secrets are masked."""
    gpu = gpu_sample.sample()
    meminfo = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith(_MEMORY)]
    state = ", ".join(f"{name} {value:g}" for name, value in (gpu or {}).items() if value is not None)
    log = journal(unit, unit_state(unit).get("InvocationID"))
    return list(masked_lines([f"{MARK}{told}", f"GPU: {state or 'nothing is known'}", *meminfo, *log]))


def restart(ledger: Ledger, unit: str, told: str) -> None:
    """Keep the evidence, tell the ledger, end the engine. Nothing where somebody else is at work on the service."""
    try:
        with alone(ledger, wait=False):
            if unit_state(unit).get("ActiveState") != "active":
                return
            say(told)
            current = ledger.linked("current")
            if current is not None and ledger.entry(current) is not None:
                write_text(ledger.wedged_log(current), "\n".join(evidence(unit, told)) + "\n")
                ledger.mark(current, RESTARTED, told, by=BY)
    except BusyError as busy:
        say(f"{busy}; nothing is done")
        return
    end(f"tinderbox-{ledger.service}", unit)


def end(container: str, unit: str) -> None:
    """Have the unit fail, so that its own bound of starts decides; by systemd where docker can not do it."""
    try:
        killed = subprocess.run(["docker", "kill", container], capture_output=True, timeout=_KILL_S, check=False)
        if killed.returncode == 0:
            return
    except subprocess.TimeoutExpired:
        pass
    subprocess.run(["systemctl", "restart", "--no-block", unit], check=False)


def reason(checks: int, seconds: float) -> str:
    """In one line, for the journal, the ledger and the diagnosis."""
    gpu = gpu_sample.sample() or {}
    busy, power = gpu.get("utilisation_percent"), gpu.get("power_w")
    shown = "" if busy is None or power is None else f"; the GPU is {busy:.0f} % busy at {power:.1f} W"
    return f"wedged: no reply and no token counted in {checks} checks over {seconds:.0f} s{shown}"


def say(message: str) -> None:
    """One line for the journal."""
    sys.stdout.write(f"{MARK}{message}\n")
    sys.stdout.flush()


def main(sleep: Callable[[float], None] = time.sleep) -> int:
    """Watch until a restart was needed; the unit's end ends this, and its next start starts it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("service", "url", "model"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--every", type=float, required=True, help="seconds from one check to the next")
    parser.add_argument("--checks", type=int, required=True, help="that fail before the server counts as wedged")
    parser.add_argument("--task", choices=TASKS, default=GENERATE, help="what the model is asked for")
    parser.add_argument("--secret-file", type=Path)
    parser.add_argument("--key-variable")
    options = parser.parse_args()
    key = read_secret(options.secret_file, options.key_variable) if options.secret_file else None
    endpoint = Endpoint(options.url, options.model, key)
    watch = Watch(
        answers=lambda: answers(endpoint, options.every, options.task),
        counts=lambda: engine_sample.counters(options.url, key),
        pauses=lambda: measured(options.service),
        checks=options.checks,
    )
    since = time.monotonic()
    # It has just generated, or it would not be ready.
    note_check(options.service, 0)
    while True:
        sleep(options.every)
        wedged = watch.wedged()
        note_check(options.service, watch.misses)
        if wedged:
            break
        since = time.monotonic() if watch.misses == 0 else since
    restart(Ledger(options.service), unit_name(options.service), reason(watch.checks, time.monotonic() - since))
    # Where nothing could be done, the watch begins anew.
    return 1


if __name__ == "__main__":
    sys.exit(main())
