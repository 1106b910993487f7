"""Collect what tells why a service failed: logs, kernel messages, memory, clocks, versions. Changes nothing.

    gather_evidence.py SERVICE        of one service
    gather_evidence.py --host         of the host alone

Prints one JSON object: `logs` (each with `name`, `kind`, `text` and `trouble`), `files` (of /proc), `gpu` (samples
of nvidia-smi, null without it), `unit` (systemd's properties) and `versions`. Secrets are masked before anything leaves
this host. A long log is cut in its middle: its head names the flags, its end the failure. What could not be read has a
`trouble`, which is not the same as a log in which nothing stands.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.api_key import variables
    from modules.hostside.atomic import read_json
    from modules.hostside.masking import MASK, masked, masked_lines
    from modules.hostside.service_unit import unit_name, unit_state
else:
    from api_key import variables
    from atomic import read_json
    from masking import MASK, masked, masked_lines
    from service_unit import unit_name, unit_state

JOBS = Path("/var/lib/tinderbox/jobs")
LEDGER = Path("/var/lib/tinderbox/ledger")
SETTINGS = Path("/etc/tinderbox")
HEAD_BYTES, TAIL_BYTES = 64 * 1024, 192 * 1024
_LINES = "4000"
_TIMEOUT_S = 30
_RECENT_JOBS = 3
_SHORTEST_SECRET = 8
# Jobs by what they do: what their programs print is matched as such.
_JOB_KINDS = {"image": "build", "weights": "fetch", "encodings": "fetch", "tools": "fetch", "start": "engine"}
_FILES = ("/proc/meminfo", "/proc/driver/nvidia/version", "/proc/cmdline", "/proc/uptime", "/etc/dgx-release")
_GPU = "name,driver_version,pstate,clocks.sm,clocks.max.sm,power.draw,temperature.gpu,utilization.gpu"
_SAMPLES, _PAUSE_S = 3, 0.5
_VERSIONS = {
    "kernel": ("uname", "-r"),
    "docker": ("docker", "version", "--format", "{{.Server.Version}}"),
    "container toolkit": ("nvidia-ctk", "--version"),
    "systemd": ("systemctl", "--version"),
}
_REFUSED = ("Operation not permitted", "Permission denied", "insufficient permissions")


def run(*command: str) -> tuple[str, str | None]:
    """What a program printed (both streams), and why that is not to be trusted, or None."""
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        return "", f"{command[0]} is not installed"
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{command[0]}: {error}"
    text = done.stdout.decode(errors="replace")
    if done.returncode == 0:
        return text, None
    return text, f"{command[0]} ended with status {done.returncode}: {text[-200:].strip()}"


def bounded(text: str) -> str:
    """The text without its middle where it is long."""
    if len(text) <= HEAD_BYTES + TAIL_BYTES:
        return text
    left_out = len(text) - HEAD_BYTES - TAIL_BYTES
    head, tail = text[:HEAD_BYTES], text[-TAIL_BYTES:]
    # Whole lines only: half a line may hold half a secret, which no pattern knows.
    head, tail = head[: head.rfind("\n") + 1], tail[tail.find("\n") + 1 :]
    return f"{head}… {left_out} characters left out …\n{tail}"


def known_secrets() -> list[str]:
    """The values that services get by files that only root reads: a key that this host made has no form of its own."""
    files = [*SETTINGS.glob("*.secret.env"), *SETTINGS.glob("*.key.env")]
    return [value for file in files for value in variables(file).values() if len(value) >= _SHORTEST_SECRET]


def log(name: str, kind: str, text: str, trouble: str | None = None) -> dict[str, Any]:
    """A log as it is printed."""
    for secret in known_secrets():
        text = text.replace(secret, MASK)
    text = "\n".join(masked_lines(bounded(text).split("\n")))
    return {"name": name, "kind": kind, "text": text, "trouble": None if trouble is None else masked(trouble)}


def service_logs(service: str, unit: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The container's log and the unit's journal, and what the last failed start and the last server that hung left.

    Of a server that is up only its own start counts; of one that is down every attempt.
    """
    text, trouble = run("docker", "logs", "--tail", _LINES, f"tinderbox-{service}")
    if trouble is None:
        yield log("container", "engine", text)
    elif "No such container" not in text:
        # What docker says in place of a log tells a cause, too.
        yield log("container", "engine", text, trouble)
    for ending, what in (("failed", "start that failed"), ("wedged", "server that hung")):
        kept = sorted((LEDGER / service).glob(f"*.{ending}.log"), key=lambda path: path.stat().st_mtime)
        if kept:
            when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(kept[-1].stat().st_mtime))
            yield log(f"{what} at {when}", "engine", kept[-1].read_text(errors="replace"))
    words = ["--unit", unit_name(service), "--output", "cat", "--no-pager", "--lines", _LINES]
    if unit.get("ActiveState") == "active" and unit.get("InvocationID"):
        words.append(f"_SYSTEMD_INVOCATION_ID={unit['InvocationID']}")
    text, trouble = run("journalctl", *words)
    yield log("journal", "engine", text.replace("-- No entries --\n", ""), trouble)


def kernel_log() -> dict[str, Any]:
    """Kernel messages of this boot. Where neither program may read them nothing is known of them."""
    text, trouble = run("journalctl", "--dmesg", "--output", "short-iso", "--no-pager", "--lines", _LINES)
    if trouble is None and "No entries" not in text and not any(word in text for word in _REFUSED):
        return log("kernel", "kernel", text)
    text, trouble = run("dmesg")
    return log("kernel", "kernel", text if trouble is None else "", trouble)


def earlyoom_log() -> dict[str, Any] | None:
    """What earlyoom did, where it is installed."""
    text, trouble = run("journalctl", "--unit", "earlyoom", "--output", "cat", "--no-pager", "--lines", "200")
    return log("earlyoom", "kernel", text) if trouble is None and text.strip() else None


def job_logs(service: str | None) -> Iterator[dict[str, Any]]:
    """The logs of the last jobs that did not succeed."""
    found = []
    for status in JOBS.glob("*/status.json"):
        state = read_json(status) or {}
        name = status.parent.name
        kind = _JOB_KINDS.get(name.split("-", 1)[0])
        foreign = name.startswith("start-") and not name.startswith(f"start-{service}-")
        if kind is not None and not foreign and state.get("state") == "failed":
            found.append((status.stat().st_mtime, name, kind))
    for _, name, kind in sorted(found, reverse=True)[:_RECENT_JOBS]:
        try:
            yield log(f"job {name}", kind, (JOBS / name / "log").read_text(errors="replace"))
        except OSError as error:
            yield log(f"job {name}", kind, "", f"{error.filename}: {error.strerror}")


def text_of(path: str) -> str | None:
    """The text of a file, None where none can be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def gpu() -> dict[str, Any] | None:
    """Several samples, since a single one may fall between two requests, and who uses the GPU."""
    samples = []
    for at in range(_SAMPLES):
        text, trouble = run("nvidia-smi", f"--query-gpu={_GPU}", "--format=csv")
        if trouble is not None and "not installed" in trouble:
            return None
        samples.append(text)
        if trouble is not None:
            break
        if at + 1 < _SAMPLES:
            time.sleep(_PAUSE_S)
    apps, _ = run("nvidia-smi", "--query-compute-apps=pid,process_name,used_gpu_memory", "--format=csv")
    return {"samples": samples, "apps": apps}


def gather(service: str | None) -> dict[str, Any]:
    """Everything."""
    unit = {} if service is None else unit_state(unit_name(service))
    logs = [] if service is None else list(service_logs(service, unit))
    logs += [kernel_log(), *job_logs(service)]
    earlyoom = earlyoom_log()
    return {
        "service": service,
        "logs": logs if earlyoom is None else [*logs, earlyoom],
        "files": {path: text_of(path) for path in _FILES},
        "gpu": gpu(),
        "unit": unit,
        "versions": {name: run(*command)[0].strip().split("\n", 1)[0] for name, command in _VERSIONS.items()},
    }


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("service", nargs="?")
    what.add_argument("--host", action="store_true")
    print(json.dumps(gather(parser.parse_args().service)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
