"""What a host with one service shows, looked at ten times a second for as long as a test lasts.

Read here and not by the product's own programs, since those are on trial.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.lab.lab_driver import Lab

_PAUSE_S = 0.05
# An engine is counted by its process: a container that docker has lost sight of is one, too.
_PROGRAM = """
import json, pathlib, subprocess, sys, time
service = sys.argv[1]
state = pathlib.Path("/var/lib/tinderbox")
ledger = state / "ledger" / service

def read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None

def linked(name):
    try:
        return (ledger / name).readlink().stem
    except OSError:
        return None

def engines():
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\\0")
        except OSError:
            continue
        if words[1:3] == [b"/usr/local/bin/vllm", b"serve"]:
            found.append(int(path.parent.name))
    return sorted(found)

def sample():
    entries = {path.stem: read(path) for path in ledger.glob("*.json") if not path.is_symlink()}
    asked = ["systemctl", "show", "--property=ActiveState,SubState", "--value", f"tinderbox-{service}.service"]
    shown = subprocess.run(asked, capture_output=True, text=True).stdout.split()
    jobs = {path.parent.name: (read(path) or {}).get("state") for path in state.glob(f"jobs/*-{service}-*/status.json")}
    return {
        "engines": engines(), "current": linked("current"), "last_good": linked("last-good"),
        "pending": (read(ledger / "pending") or {}).get("release"), "unit": "/".join(shown), "jobs": jobs,
        "events": {name: [event["event"] for event in one["events"]] for name, one in entries.items()
                   if one and "events" in one},
        "measured": sorted(path.stem for path in (state / "gates" / service).glob("*.json")),
    }

last, told = None, 0
while True:
    now = sample()
    if now != last or time.time() - told > 2:
        last, told = now, time.time()
        print(json.dumps({"at": told, **now}), flush=True)
    time.sleep(0.1)
"""


@dataclass(frozen=True)
class Sample:
    """How the host stood. `at`: its clock. `engines`: their processes. `events`: release → what became of it.

    `unit`: systemd's two words. `jobs`: those of the service → state. `measured`: releases with a gate's result.
    """

    at: float
    engines: tuple[int, ...]
    current: str | None
    last_good: str | None
    pending: str | None
    unit: str
    jobs: Mapping[str, str]
    events: Mapping[str, list[str]]
    measured: tuple[str, ...]

    def running(self, name: str) -> bool:
        """Whether a job that begins so runs."""
        return any(job.startswith(name) and state == "running" for job, state in self.jobs.items())


@dataclass
class Watch:
    """All samples since it began, each unlike the one before it or two seconds younger."""

    samples: list[Sample] = field(default_factory=list)

    def await_(self, wanted: Callable[[Sample], bool], go_on: Callable[[], bool], limit_s: float) -> Sample | None:
        """The first sample from now on that is as wanted; None where there was none before `go_on` ended, or in time.

        The youngest one is looked at again and again: what is wanted may hang on other things, too.
        """
        at, deadline = max(0, len(self.samples) - 1), time.monotonic() + limit_s
        while time.monotonic() < deadline:
            alive = go_on()
            fresh = self.samples[at:]
            at += max(0, len(fresh) - 1)
            for sample in fresh:
                if wanted(sample):
                    return sample
            if not alive:
                return None
            time.sleep(_PAUSE_S)
        return None

    def most_engines(self) -> int:
        """At any one time."""
        return max(len(sample.engines) for sample in self.samples)

    def called_good(self) -> set[str]:
        """Every release that was ever the last good one, or marked good."""
        marked = {name for sample in self.samples for name, events in sample.events.items() if "good" in events}
        return marked | {sample.last_good for sample in self.samples if sample.last_good is not None}


@contextmanager
def watched(lab: Lab, host: str, service: str) -> Iterator[Watch]:
    """Look at the service on `host` while this lasts."""
    watch = Watch()

    def collect(lines: Iterator[str]) -> None:
        for line in lines:
            found: dict[str, Any] = json.loads(line)
            found |= {"engines": tuple(found["engines"]), "measured": tuple(found["measured"])}
            watch.samples.append(Sample(**found))

    argv = ["ssh", "-F", str(lab.layout.ssh_config), host, f"sudo python3 -u - {service}"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ssh:
        assert ssh.stdin is not None
        assert ssh.stdout is not None
        ssh.stdin.write(_PROGRAM)
        ssh.stdin.close()
        thread = threading.Thread(target=collect, args=(iter(ssh.stdout),), daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            ended = ssh.poll()
            ssh.terminate()
            thread.join(timeout=10)
    assert ended is None, f"nobody looked at {host} any more: ssh ended with {ended}"
    assert watch.samples, f"nothing was seen of {host}"
