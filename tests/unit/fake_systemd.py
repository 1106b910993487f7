"""A host with one service: real ledger and programs in a folder, a systemd that is made up, and runs that can be cut.

Every durable effect of a program (a file that gets its name, one that goes, a word to systemd) is counted, and the run
can be ended right before any of them, as `kill -9` does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modules.facts.service import Barred, ServiceState, Underway, UnitState
from modules.hostside import activation, judge_release, ledger, service_server, start_service
from modules.hostside.ledger import Ledger
from modules.hostside.service_state import sha256, standings
from modules.release.decision import Action, decide, turned_away
from modules.release.files import HostFile

SERVICE = "svc"
ACTIVE = {"ActiveState": "active", "SubState": "running", "NRestarts": "0", "InvocationID": "i"}
STARTING = {"ActiveState": "activating", "SubState": "start-post", "NRestarts": "0", "InvocationID": "i"}
PAUSING = {"ActiveState": "activating", "SubState": "auto-restart", "NRestarts": "1", "InvocationID": "i"}
INACTIVE = {"ActiveState": "inactive", "SubState": "dead", "NRestarts": "0", "InvocationID": ""}


class Cut(BaseException):
    """The run ends here."""


class Machine:
    """`sound`: releases that get ready; `slow`: those that fail their gate. `engine`: the release that runs."""

    def __init__(self, root: Path, sound: set[str], slow: set[str]) -> None:
        self.root, self.sound, self.slow = root, sound, slow
        self.ledger = Ledger(SERVICE, root)
        self.state, self.enabled = INACTIVE, False
        self.engine: str | None = None
        self.has_image = True
        # What the machine is now, and what it was when the engine was started.
        self.versions: dict[str, str | None] = {"driver": "580.1", "CUDA toolkit": "13.0.1"}
        self.started_on: dict[str, str | None] = {}
        self.gated, self.wrong, self.effects, self.cut_at = True, list[str](), 0, -1

    def effect(self) -> None:
        """Count one; end the run if it is its turn. What must never be is looked for each time."""
        self.look_for_wrongs()
        self.effects += 1
        if self.effects == self.cut_at:
            raise Cut

    def look_for_wrongs(self) -> None:
        good = self.ledger.linked("last-good")
        if good is not None and (good not in self.sound or (self.gated and good in self.slow)):
            self.wrong.append(f"{good} is marked good")
        if self.engine is not None and self.engine != self.ledger.linked("current"):
            self.wrong.append(f"{self.engine} runs, and {self.ledger.linked('current')} is in force")

    def systemctl(self, *words: str) -> bool:
        """Carry a command out, as far as it does not take time."""
        self.effect()
        verb = words[0]
        if verb == "stop":
            self.state, self.engine = INACTIVE, None
        if verb == "start":
            if self.engine is not None:
                self.wrong.append("a second engine")
            files = {(self.root / "etc" / name).read_text().split()[-1] for name in ("svc.unit", "svc.labels")}
            if len(files) != 1:
                self.wrong.append(f"started from the files of {files}")
            self.engine, self.state = files.pop(), STARTING
            self.started_on = dict(self.versions)
        if verb in {"enable", "disable"}:
            self.enabled = verb == "enable"
        return True

    def pass_time(self, _seconds: float = 0) -> None:
        """What has been started gets ready, or fails and waits to be tried again."""
        if self.state == STARTING:
            self.state = ACTIVE if self.engine in self.sound else PAUSING

    def files(self, release: str) -> list[dict[str, Any]]:
        """Of a release: two files that must not be mixed with another one's."""
        etc = self.root / "etc"
        return [
            {"path": str(etc / name), "content": f"{name} of {release}\n", "secret": name.endswith("key")}
            for name in ("svc.unit", "svc.labels", "svc.key")
        ]

    def request(self, release: str) -> dict[str, Any]:
        """To stage it."""
        return {
            "service": SERVICE,
            "id": release,
            "release": {"image": "i"},
            "files": self.files(release),
            "caches": [],
        }

    def seen(self) -> ServiceState:
        """What a run is told of the host."""
        found, pending = standings(self.ledger), activation.read_pending(self.ledger)
        current = self.ledger.linked("current")
        barred = {name: one["barred"] for name, one in found.items() if one["barred"]}
        paths = [file["path"] for file in self.files("any")]
        return ServiceState(
            systemd=255,
            unit=UnitState(self.state["ActiveState"], self.state["SubState"], self.enabled, stale=False, job=False),
            files={path: sha256(Path(path)) for path in paths},
            current=current,
            last_good=self.ledger.linked("last-good"),
            image="i",
            container_release=self.engine,
            commit="c",
            model_is_here=True,
            missing_encodings=(),
            standings={name: one["standing"] for name, one in found.items()},
            barred={name: Barred(one["event"], one["at"]) for name, one in barred.items()},
            pending=Underway(pending.release, pending.back, pending.instead, pending.ungated) if pending else None,
            versions=self.versions,
            proved_on=(self.ledger.entry(current) or {}).get("proved_on") if current else None,
            started_on=self.started_on or None,
        )

    def program(self, *words: str) -> int:
        """`start_service.py` as the host runs it."""
        more = [] if self.gated or "--settle" in words else ["--ungated"]
        sys.argv = ["start_service.py", SERVICE, *words, *more]
        return start_service.main()

    def run(self, wanted: str, *, forced: bool = False) -> int:
        """What a run of Tinderbox does for the service, decided by the code that decides it there."""
        state = self.seen()
        release: Any = SimpleNamespace(id=wanted)
        files = tuple(HostFile(file["path"], file["content"], secret=file["secret"]) for file in self.files(wanted))
        action = decide(release, files, state, gated=self.gated)
        if turned_away(release, action, state) is not None and not forced:
            if state.pending is not None:
                self.program("--settle")
            return 1
        if action is not Action.NOTHING:
            if action is not Action.ATTACH:
                ledger.stage(self.request(wanted), self.root)
            words = ["--attach"] if action is Action.ATTACH else []
            if self.program(wanted, *words, *(["--forced"] if forced else [])) != 0:
                return 1
        return self.gate(wanted) if self.gated else 0

    def gate(self, wanted: str) -> int:
        """Measure and judge, unless it is known to have passed."""
        if self.ledger.linked("last-good") == wanted and not self.seen().upgraded:
            return 0
        result = self.root / "gates" / SERVICE / f"{wanted}.json"
        result.parent.mkdir(parents=True, exist_ok=True)
        result.write_text(json.dumps({"versions": self.versions}))
        good = wanted not in self.slow
        judgement = {"verdict": "PASS" if good else "FAIL", "thresholds": "t"}
        former = self.ledger.linked("last-good")
        judge_release.judge({"service": SERVICE, "id": wanted, "judgement": judgement, "good": good}, self.root)
        if not good and former is not None:
            self.program("--settle")
        return 0 if good else 1

    def outcome(self) -> dict[str, Any]:
        """All that a run leaves behind, but for times and how often something was tried."""
        state = self.seen()
        return {
            "current": state.current,
            "last good": state.last_good,
            "standings": dict(state.standings),
            "barred": sorted(state.barred),
            "pending": state.pending,
            "proved on": state.proved_on,
            "started on": state.started_on,
            "engine": self.engine,
            "unit": self.state["ActiveState"],
            "enabled": self.enabled,
            "files": {Path(path).name: Path(path).read_text() for path in state.files if Path(path).exists()},
        }


def machines(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Callable[..., Machine]:
    """What makes machines, by the arguments of `Machine`: one at a time, each in a place of its own in `folder`."""
    now: list[Machine] = []
    count = iter(range(10_000))

    def make(sound: set[str], slow: set[str] | None = None) -> Machine:
        now[:] = [Machine(folder / str(next(count)), sound, slow or set())]
        monkeypatch.setattr(ledger, "SETTINGS", now[0].root / "etc")
        return now[0]

    def run(command: list[str] | tuple[str, ...], **_: object) -> subprocess.CompletedProcess[str]:
        machine, (program, *words) = now[0], command
        done = machine.has_image if program == "docker" else machine.systemctl(*words)
        return subprocess.CompletedProcess(command, 0 if done else 1, "", "")

    replace, unlink = Path.replace, Path.unlink

    def counted_replace(self: Path, target: str | Path) -> Path:
        now[0].effect()
        return replace(self, target)

    def counted_unlink(self: Path, missing_ok: bool = False) -> None:
        if self.exists() or self.is_symlink():
            now[0].effect()
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "replace", counted_replace)
    monkeypatch.setattr(Path, "unlink", counted_unlink)
    # Nothing here is to survive a power cut, and there are thousands of files.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(service_server, "unit_state", lambda _: now[0].state)
    monkeypatch.setattr(service_server, "journal", lambda *_: ["await-ready: not ready after 3 s: it broke"])
    monkeypatch.setattr(start_service, "Ledger", lambda service: Ledger(service, now[0].root))
    monkeypatch.setattr(
        start_service,
        "Server",
        lambda book, unit, say: service_server.Server(book, unit, say, now[0].pass_time, lambda _: now[0].versions),
    )
    return make
