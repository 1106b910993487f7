"""A service's systemd unit: how it stands, what it logged, which known steps the log shows."""

from __future__ import annotations

import re
import subprocess

LOG_LINES = 400
_STANDS = "ActiveState,SubState,Result,NRestarts,InvocationID,UnitFileState,NeedDaemonReload,Job"
PROPERTIES = f"{_STANDS},ActiveEnterTimestampMonotonic"
UNDERWAY, READY, FAILED = "underway", "ready", "failed"

# What engines print on their way, newest wins: enough to see that a slow start moves.
MILESTONES = (
    (r"await-ready: (ready after .*)", "{0}"),
    (
        r"Application startup complete|The server is fired up and ready to roll|server is listening",
        "waiting for a reply",
    ),
    (r"[Cc]apturing (?:CUDA|cuda) graph\D*(\d+%)?", "capturing CUDA graphs {0}"),
    (r"(?:Available KV cache memory|[Kk][Vv] [Cc]ache size|KV Cache is allocated)\D*([\d.,]+ ?\w*)", "KV cache {0}"),
    (r"(?:Model loading took|Load weight end|Loading weights took)\D*([\d.]+ ?\w*)", "weights loaded ({0})"),
    (r"[Ll]oading (?:safetensors|checkpoint|.*shards)\D*(\d+%)", "loading weights {0}"),
    (r"Starting to load model|Load weight begin|load_model: loading model", "loading weights"),
    (r"vLLM API server version|non-default args|server_args=|Initializing a V1 LLM engine", "engine starting"),
)


_REASONS = (
    r"load-guard: (stopped the engine: .+)",
    r"await-ready: not ready after \d+ s: (.+)",
    r"(?:memory-gate|prepare-start|pair): (refused: .+)",
)
_HELD_BY = "memory-gate: "


def run(*command: str) -> str | None:
    """Standard output of a program, or None where it failed or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def unit_name(service: str) -> str:
    """The systemd unit of a service."""
    return f"tinderbox-{service}.service"


def watch_unit(service: str) -> str:
    """The unit that watches a service (layout.py has the same)."""
    return f"tinderbox-watch@{service}.service"


def unit_state(unit: str) -> dict[str, str]:
    """Properties of a unit, as systemd names them."""
    shown = run("systemctl", "show", f"--property={PROPERTIES}", unit) or ""
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)


def start_outcome(unit: dict[str, str], restarts_before: int = 0) -> str:
    """How a start stands. One that systemd tries again has failed: the same release would only fail more slowly.

    `restarts_before`: systemd's counter when the waiting began; a start by hand sets it to 0.
    """
    active, sub = unit.get("ActiveState"), unit.get("SubState")
    if int(unit.get("NRestarts") or 0) > restarts_before or sub == "auto-restart":
        return FAILED
    if unit.get("Job", "0") not in {"", "0"} or active in {"activating", "deactivating", "reloading"}:
        return UNDERWAY
    return READY if active == "active" else FAILED


def journal(unit: str, invocation: str | None = None, lines: int | None = LOG_LINES) -> list[str]:
    """The unit's log, oldest line first: its newest `lines`, of one start or of all."""
    command = ["journalctl", "--quiet", "--no-pager", "--output=cat", f"--unit={unit}"]
    if lines is not None:
        command.append(f"--lines={lines}")
    if invocation:
        command.append(f"_SYSTEMD_INVOCATION_ID={invocation}")
    return (run(*command) or "").splitlines()


def milestone(lines: list[str]) -> str | None:
    """The newest known step that a log shows."""
    for line in reversed(lines):
        for pattern, form in MILESTONES:
            found = re.search(pattern, line)
            if found:
                return form.format(*[group or "" for group in found.groups()]).strip()
    return None


def until_failed(lines: list[str]) -> list[str]:
    """A failed start's log until it failed, which is told by other words. What an engine says at its end is noise.

    All of it, where nobody has said when that was. Who holds the memory that was not there stands after the refusal.
    """
    at = next((at for at, line in enumerate(lines) if any(re.search(reason, line) for reason in _REASONS)), None)
    if at is None:
        return lines
    held = [line for line in lines[at + 1 :] if line.startswith(_HELD_BY)] if lines[at].startswith(_HELD_BY) else []
    return [*lines[:at], *held]


def why_not_ready(lines: list[str], unit: dict[str, str]) -> str:
    """Why a start has failed, in one line: as a program of ours said it, else by systemd.

    Where the load guard has stopped the engine, the others only saw it gone.
    """
    for pattern in _REASONS:
        told = [found[1] for found in (re.search(pattern, line) for line in lines) if found]
        if told:
            return told[-1].strip()
    return f"its unit is {unit.get('ActiveState', 'unknown')} ({unit.get('Result', 'unknown')})"
