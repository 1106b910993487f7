"""The server whose place a service takes: stopped once, kept, had back as it was; and weights that come by links."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import predecessor, predecessor_note
from modules.hostside.docker_api import DockerApiError
from modules.hostside.ledger import Ledger
from modules.hostside.predecessor import PredecessorError
from modules.hostside.predecessor_note import BACK, CHOSEN, STOPPED

SERVICE, CONTAINER, UNIT = "chat", "c" * 64, "llm.service"


class Owners:
    """A docker and a systemd with one server of the owner's. `deaf`: it stays. `words`: what they were told."""

    def __init__(self, *, removed: bool = False, policy: str = "unless-stopped", kind: str = "simple") -> None:
        self.host: dict[str, Any] = {"AutoRemove": removed, "RestartPolicy": {"Name": policy, "MaximumRetryCount": 0}}
        self.there = self.runs = True
        self.active = self.enabled = True
        self.kind, self.deaf = kind, False
        self.words: list[tuple[str, ...]] = []
        self.id, self.broken, self.executed = CONTAINER, False, 0

    def told(self) -> dict[str, Any]:
        return {
            "Id": self.id,
            "Name": "/llm",
            "HostConfig": self.host,
            "Config": {"Env": ["KEY=sesame"]},
            "Image": "i",
        }

    def ask(self, *words: str) -> str | None:
        if words[0] == "systemctl":
            shown = {"ActiveState": "active" if self.active else "inactive", "Type": self.kind}
            return {**shown, "UnitFileState": "enabled" if self.enabled else "disabled"}[words[3]]
        if not self.there or words[-1] not in {self.id, "llm"}:
            return None
        return str(self.runs).lower() if "{{.State.Running}}" in words else json.dumps([self.told()])

    def run(self, words: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.words.append(tuple(words))
        program, verb = words[:2]
        if program == "systemctl" and words[-1] == UNIT and not self.deaf:
            self.enabled = {"enable": True, "disable": False}.get(verb, self.enabled)
            self.active = {"start": True, "stop": False}.get(verb, self.active)
        if (program, verb) == ("docker", "update"):
            self.host["RestartPolicy"] = {"Name": words[2].partition("=")[2], "MaximumRetryCount": 0}
        if (program, verb) == ("docker", "stop") and not self.deaf:
            self.runs, self.there = False, not self.host["AutoRemove"]
        return subprocess.CompletedProcess(list(words), 1 if self.deaf else 0, "", "deaf")

    DockerApiError = DockerApiError

    def start(self, _: str) -> None:
        if self.broken:
            raise DockerApiError("no room for it")
        self.runs = True

    def made_again(self, _: Any) -> str:
        if self.there:
            raise DockerApiError("the name is in use")
        self.there, self.id = True, "d" * 64
        return self.id

    def execution(self, _: int) -> dict[str, Any]:
        return {"Cmd": ["vllm", "serve"]}

    def execute(self, *_: Any) -> None:
        self.executed += 1


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> Owners:
    found = Owners()
    use(monkeypatch, found)
    return found


def use(monkeypatch: pytest.MonkeyPatch, owners: Owners) -> None:
    monkeypatch.setattr(predecessor, "run", owners.ask)
    monkeypatch.setattr(subprocess, "run", owners.run)
    monkeypatch.setattr(predecessor, "docker_api", owners)


def record(*units: str, container: str | None = CONTAINER, **more: Any) -> dict[str, Any]:
    named = f"container {container}"
    return {"named": named, "container": container, "name": "llm", "units": list(units), "pid": 1, "port": 8000, **more}


def state(root: Path) -> str:
    return str((predecessor_note.noted(SERVICE, root) or {})["state"])


def test_a_container_is_kept_and_docker_starts_it_no_more(owners: Owners, tmp_path: Path) -> None:
    predecessor.choose(SERVICE, record(), tmp_path)
    assert predecessor_note.note_file(SERVICE, tmp_path).stat().st_mode & 0o777 == 0o600
    assert owners.runs
    predecessor.make_way(SERVICE, tmp_path)
    assert (owners.there, owners.runs, owners.host["RestartPolicy"]["Name"]) == (True, False, "no")
    assert state(tmp_path) == STOPPED
    owners.words.clear()
    predecessor.make_way(SERVICE, tmp_path)
    assert owners.words == []
    assert predecessor.have_back(SERVICE, tmp_path) == f"container {CONTAINER}"
    assert (owners.runs, owners.host["RestartPolicy"]["Name"]) == (True, "unless-stopped")
    assert state(tmp_path) == BACK
    assert predecessor.have_back(SERVICE, tmp_path) is None


def test_a_container_that_docker_removes_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    owners = Owners(removed=True, policy="no")
    use(monkeypatch, owners)
    predecessor.choose(SERVICE, record(), tmp_path)
    predecessor.make_way(SERVICE, tmp_path)
    assert not owners.there
    assert not any(words[:2] == ("docker", "update") for words in owners.words)
    predecessor.have_back(SERVICE, tmp_path)
    assert (owners.there, owners.runs) == (True, True)


@pytest.mark.parametrize("cut", [False, True])
def test_what_was_made_again_and_did_not_start_is_started_by_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cut: bool
) -> None:
    """`cut`: before it was noted what it is called now."""
    owners = Owners(removed=True, policy="no")
    use(monkeypatch, owners)
    predecessor.choose(SERVICE, record(), tmp_path)
    predecessor.make_way(SERVICE, tmp_path)
    if cut:
        owners.made_again(None)
    owners.broken = True
    with pytest.raises(PredecessorError, match="no room for it"):
        predecessor.have_back(SERVICE, tmp_path)
    owners.broken = False
    assert predecessor.have_back(SERVICE, tmp_path) == f"container {CONTAINER}"
    assert (owners.runs, state(tmp_path)) == (True, BACK)


@pytest.mark.parametrize("runs", [False, True])
def test_a_server_in_a_container_that_never_made_way_is_not_started_twice(
    owners: Owners, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runs: bool
) -> None:
    monkeypatch.setattr(
        predecessor, "_executes", lambda container, words: runs and (container, words[0]) == (CONTAINER, "vllm")
    )
    predecessor.choose(SERVICE, record(executed=True), tmp_path)
    predecessor.have_back(SERVICE, tmp_path)
    assert owners.executed == (not runs)


def test_which_program_runs_in_a_container_is_seen(tmp_path: Path) -> None:
    for pid, words, group in ((7, b"vllm\0serve\0", CONTAINER), (8, b"other\0", "f" * 64)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_bytes(words)
        (tmp_path / str(pid) / "cgroup").write_text(f"0::/system.slice/docker-{group}.scope\n")
    assert predecessor._executes(CONTAINER, ["vllm", "serve"], tmp_path)
    assert not predecessor._executes(CONTAINER, ["vllm"], tmp_path)
    assert not predecessor._executes(CONTAINER, ["other"], tmp_path)


def test_a_unit_is_disabled_and_stopped_and_comes_back_enabled(owners: Owners, tmp_path: Path) -> None:
    predecessor.choose(SERVICE, record(UNIT, container=None), tmp_path)
    predecessor.make_way(SERVICE, tmp_path)
    assert (owners.active, owners.enabled) == (False, False)
    predecessor.have_back(SERVICE, tmp_path)
    assert (owners.active, owners.enabled) == (True, True)


def test_a_unit_that_only_starts_containers_is_not_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its stop may take down what stands beside the server."""
    owners = Owners(kind="oneshot")
    use(monkeypatch, owners)
    predecessor.choose(SERVICE, record(UNIT), tmp_path)
    predecessor.make_way(SERVICE, tmp_path)
    assert (owners.active, owners.enabled, owners.runs) == (True, False, False)
    predecessor.have_back(SERVICE, tmp_path)
    assert (owners.enabled, owners.runs) == (True, True)


def test_what_can_not_be_stopped_is_told_and_stays_chosen(owners: Owners, tmp_path: Path) -> None:
    predecessor.choose(SERVICE, record(UNIT), tmp_path)
    owners.deaf = True
    with pytest.raises(PredecessorError, match=f"unit {UNIT} could not be stopped"):
        predecessor.make_way(SERVICE, tmp_path)
    assert state(tmp_path) == CHOSEN
    ledger = Ledger(SERVICE, tmp_path)
    assert "does not start" in predecessor.regained(ledger)[0]
    owners.deaf = False
    assert predecessor.regained(ledger) == [f"container {CONTAINER}"]
    assert predecessor.regained(Ledger("other", tmp_path)) == []


def test_a_cut_between_stop_and_note_loses_nothing(
    owners: Owners, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    predecessor.choose(SERVICE, record(), tmp_path)
    write = predecessor_note.write

    def cut(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(predecessor, "write", cut)
    with pytest.raises(KeyboardInterrupt):
        predecessor.make_way(SERVICE, tmp_path)
    monkeypatch.setattr(predecessor, "write", write)
    assert (owners.runs, state(tmp_path)) == (False, CHOSEN)
    predecessor.have_back(SERVICE, tmp_path)
    assert (owners.runs, owners.host["RestartPolicy"]["Name"]) == (True, "unless-stopped")


def test_what_has_made_way_is_not_noted_over(owners: Owners, tmp_path: Path) -> None:
    predecessor.choose(SERVICE, record(), tmp_path)
    predecessor.make_way(SERVICE, tmp_path)
    predecessor.choose(SERVICE, record(container="e" * 64), tmp_path)
    assert (predecessor_note.noted(SERVICE, tmp_path) or {})["container"] == CONTAINER
    assert owners.words


def test_until_then_its_process_counts_as_the_services(owners: Owners, tmp_path: Path) -> None:
    predecessor.choose(SERVICE, record(UNIT, container=None), tmp_path)
    proc = tmp_path / "proc"
    for pid, group in ((7, f"/system.slice/{UNIT}"), (8, "/system.slice/other.service")):
        (proc / str(pid)).mkdir(parents=True)
        (proc / str(pid) / "cgroup").write_text(f"0::{group}\n")
    assert predecessor_note.service_to_come(7, None, proc, tmp_path) == SERVICE
    assert predecessor_note.service_to_come(8, None, proc, tmp_path) is None
    assert predecessor_note.service_to_come(9, None, proc, tmp_path) is None
    predecessor.make_way(SERVICE, tmp_path)
    assert predecessor_note.service_to_come(7, None, proc, tmp_path) is None
    assert not owners.active
