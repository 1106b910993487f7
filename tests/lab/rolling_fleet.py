"""A fleet of lab hosts that serve by the fake engine, with a strategy, and what its hosts know of rollouts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modules.lab.layout import ROOT
from tests.lab.fake_release import CUTLASS, PORT, READINESS, SERVICE, recipe
from tests.lab.lab_driver import Lab

HOSTS = ("spark-1", "spark-2", "spark-3", "spark-4")
# Some 30 tokens a second: no busy machine takes it for the slow one, of 2, nor does it make one busy.
STEADY = "0.03"
GATE: dict[str, Any] = {
    "client": "controller",
    "workload": {"pp": [16], "tg": [8], "runs": 2, "coherence": False, "time_limit_s": 180},
    "most_runs": 2,
    "thresholds": {"tg8@pp16 c1": {"min": 6}},
}
STRATEGY = {"canary": 1, "batch": 2, "max_failures": 0, "soak": "15s"}
_LEDGER = f"/var/lib/tinderbox/ledger/{SERVICE}"
_PAUSE_S = 0.2


def fleet_of(
    lab: Lab,
    name: str,
    /,
    *,
    strategy: Mapping[str, Any] | None = None,
    service: Mapping[str, Any] | None = None,
    change: Callable[[dict[str, Any]], None] = lambda _: None,
    **environment: str,
) -> Path:
    """A fleet file of the four hosts, whose only service is a release of the fake engine with that environment."""

    def write(content: dict[str, Any]) -> None:
        content["fleet"] = "rolling"
        content["hosts"] = {host: content["hosts"][host] for host in HOSTS}
        content["strategy"] = dict(STRATEGY if strategy is None else strategy)
        wish = content["defaults"]["services"]["gpt-oss"]
        wish |= {"port": PORT, "gate": GATE, "image": {"recipe": recipe(lab)}, "readiness": READINESS}
        wish |= {"environment": {"FAKE_SAYS": CUTLASS, "FAKE_TOKEN_S": STEADY, **environment}, **(service or {})}
        content["defaults"]["services"] = {SERVICE: wish}
        change(content)

    return lab.write_fleet(f"rolling-{name}", write)


@dataclass(frozen=True)
class Ledgers:
    """What hosts have written down."""

    lab: Lab

    def serves(self, host: str) -> str:
        """The release that is in force."""
        link = self.lab.ssh(host, f"sudo readlink {_LEDGER}/current", check=False).stdout
        return link.strip().removesuffix(".json")

    def all_serve(self) -> dict[str, str]:
        """Host → release."""
        return {host: self.serves(host) for host in HOSTS}

    def entry(self, host: str, release: str) -> dict[str, Any]:
        """Of the release."""
        found: dict[str, Any] = json.loads(self.lab.read(host, f"{_LEDGER}/{release}.json"))
        return found

    def events(self, host: str, release: str) -> list[str]:
        """What happened to it."""
        return [event["event"] for event in self.entry(host, release)["events"]]

    def brought_by(self, host: str) -> str:
        """The rollout and its step that last put the release in force that serves."""
        events = self.entry(host, self.serves(host))["events"]
        return str(next((event.get("rollout", "") for event in reversed(events) if event["event"] == "activated"), ""))

    def rollout(self, host: str) -> dict[str, Any]:
        """What the host knows of the last rollout that it was a part of."""
        found: dict[str, Any] = json.loads(self.lab.read(host, "/var/lib/tinderbox/ledger/rollout.json"))
        return found

    def invocation(self, host: str) -> str:
        """Another one for each start of the server."""
        return self.lab.ssh(host, f"systemctl show -P InvocationID tinderbox-{SERVICE}").stdout.strip()


@dataclass
class Controller:
    """A run of `modules.converge` in a session of its own, and what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, lab: Lab, fleet: Path, name: str) -> Controller:
        """In the background."""
        log = lab.layout.folder / f"run-{name}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "modules.converge"], cwd=ROOT, env={**os.environ, **lab.environment(fleet)},
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        return cls(process, log)

    def await_said(self, words: str, *, limit_s: float = 300) -> None:
        """Until it has said so; fails the test when it ends without."""
        deadline = time.monotonic() + limit_s
        while words not in self.log.read_text():
            assert self.process.poll() is None, f"it ended without a word of {words!r}:\n{self.log.read_text()}"
            assert time.monotonic() < deadline, f"no word of {words!r} in {limit_s} s:\n{self.log.read_text()}"
            time.sleep(_PAUSE_S)

    def kill(self) -> None:
        """As a power cut at the controller: it and the pyinfra that it has started are gone at once."""
        children = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        self.process.kill()
        for child in children:
            os.killpg(int(child), signal.SIGKILL)
        self.process.wait()

    def ended(self, *, limit_s: float = 900) -> int:
        """Its exit status."""
        return self.process.wait(limit_s)
