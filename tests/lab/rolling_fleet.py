"""Four lab hosts that serve by the fake engine behind a gateway, with a strategy, and what they know of rollouts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modules.lab.layout import ROOT
from tests.lab.behind_gateway import GATEWAY_HOST, gateway_settings, service_of, write_keys
from tests.lab.fake_release import SERVICE
from tests.lab.lab_driver import Lab

HOSTS = ("spark-1", "spark-2", "spark-3", "spark-4")
# Ten tokens a second: a reply is always under way, and four clients cost a busy machine little. The slow one makes 2.
PACE_S, SLOW_S = "0.1", "0.5"
GATE: dict[str, Any] = {
    "client": "controller",
    "workload": {"pp": [16], "tg": [8], "runs": 2, "coherence": False, "time_limit_s": 180},
    "most_runs": 2,
    "thresholds": {"tg8@pp16 c1": {"min": 5}},
}
STRATEGY = {"canary": 1, "batch": 2, "max_failures": 0, "soak": "10s"}
_LEDGER = f"/var/lib/tinderbox/ledger/{SERVICE}"
_PAUSE_S = 0.2


def fleet_of(lab: Lab, /, *, strategy: Mapping[str, Any] | None = None, **environment: str) -> Path:
    """The fleet file of the four hosts, all of which serve one release of the fake engine, behind one's gateway.

    It is written to the same place each time, as its owner edits it. `strategy`: another than the usual one.
    `environment`: of the engine, by which releases differ.
    """
    secrets = write_keys(lab)

    def write(content: dict[str, Any]) -> None:
        content |= {"fleet": "rolling", "secrets": secrets, "strategy": dict(strategy or STRATEGY)}
        wish = service_of(lab, {"gate": GATE}, FAKE_TOKEN_S=environment.pop("FAKE_TOKEN_S", PACE_S), **environment)
        content["defaults"]["services"] = {SERVICE: wish}
        content["hosts"] = {host: content["hosts"][host] for host in HOSTS}
        for host, entry in content["hosts"].items():
            entry["settings"] = {"network": {"peer_address": lab.address(host)}}
        content["hosts"][GATEWAY_HOST]["settings"]["gateway"] = gateway_settings()

    return lab.write_fleet("rolling", write)


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
