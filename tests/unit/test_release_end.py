"""A service is stopped, or taken off its host."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modules.hostside import end_service
from modules.hostside.end_service import EndError, end
from modules.hostside.ledger import Ledger, point
from modules.hostside.release_list import services

# As the programs import it on a host, so that it is the very class that they raise.
if TYPE_CHECKING:
    from modules.hostside.activation import BusyError, alone
else:
    from activation import BusyError, alone


JOBS = ("start-{}-r1", "start-{}-settle", "gate-{}-r1-0abc", "gate-{}-r1-0abc-9f")


class Host:
    """A host with two services in a folder, and a systemd that does what it is told."""

    def __init__(self, folder: Path) -> None:
        self.state, self.settings, self.units = folder / "state", folder / "etc", folder / "units"
        self.commands: list[tuple[str, ...]] = []
        self.active = "active"
        for service in ("gpt-oss", "other"):
            ledger = Ledger(service, self.state)
            ledger.record("r1", {}, [])
            ledger.mark("r1", "activated")
            point(ledger.directory / "current", "r1.json")
            for path in (
                self.units / f"tinderbox-{service}.service",
                self.units / f"tinderbox-watch@{service}.service",
                self.units / f"tinderbox-{service}.service.d" / "neighbours.conf",
                *(
                    self.settings / f"{service}.{ending}"
                    for ending in ("env", "secret.env", "key.env", "labels", "memory.json")
                ),
                self.state / "gates" / service / "r1.json",
                self.state / "caches" / service / "vllm" / "kernel",
                *(self.state / "jobs" / job.format(service) / "log" for job in JOBS),
            ):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x")

    @property
    def root(self) -> tuple[Path, Path, Path]:
        return self.state, self.settings, self.units

    def run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(tuple(command))
        if command[:2] == ["systemctl", "stop"]:
            self.active = "inactive"
        return subprocess.CompletedProcess(command, 0, "", "")

    def files(self, service: str) -> list[str]:
        folder = self.state.parent
        return [str(path) for path in folder.rglob("*") if f"{service}" in str(path.relative_to(folder))]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path)
    monkeypatch.setattr(subprocess, "run", host.run)
    monkeypatch.setattr(end_service, "unit_state", lambda _: {"ActiveState": host.active})
    monkeypatch.setattr("gpus_kept.run", lambda *_: None)
    return host


def test_a_stopped_service_stays_down_over_a_boot_and_the_ledger_tells(host: Host) -> None:
    end("stop", "gpt-oss", "me@here", host.root)
    assert [words[1] for words in host.commands] == ["disable", "stop", "reset-failed"]
    event = (Ledger("gpt-oss", host.state).entry("r1") or {})["events"][-1]
    assert (event["event"], event["by"]) == ("stopped", "me@here")
    assert {path.replace("gpt-oss", "other") for path in host.files("gpt-oss")} >= set(host.files("other"))


def test_a_removed_one_leaves_nothing_and_others_alone(host: Host) -> None:
    others = host.files("other")
    # Of a service whose name begins alike.
    alike = host.state / "jobs" / "start-gpt-oss-big-r1" / "log"
    alike.parent.mkdir()
    alike.write_text("x")
    end("remove", "gpt-oss", "me@here", host.root)
    assert alike.read_text() == "x"
    shutil.rmtree(alike.parent)
    assert host.files("gpt-oss") == []
    assert host.files("other") == others
    assert ("docker", "rm", "--force", "tinderbox-gpt-oss") in host.commands
    assert list(services(host.state)) == ["other"]
    # Nothing is left to do.
    host.commands.clear()
    end("remove", "gpt-oss", "me@here", host.root)
    assert host.commands == []


@pytest.mark.parametrize("cut", range(1, 11))
def test_a_removal_that_was_cut_is_found_and_done(host: Host, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    left, unlink, rmtree = [cut], Path.unlink, shutil.rmtree

    def counted() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    def unlinked(self: Path, missing_ok: bool = False) -> None:
        counted()
        unlink(self, missing_ok=missing_ok)

    def removed(path: Path) -> None:
        counted()
        rmtree(path)

    monkeypatch.setattr(Path, "unlink", unlinked)
    monkeypatch.setattr(shutil, "rmtree", removed)
    with pytest.raises(KeyboardInterrupt):
        end("remove", "gpt-oss", "", host.root)
    assert "gpt-oss" in services(host.state)
    end("remove", "gpt-oss", "", host.root)
    assert host.files("gpt-oss") == []


def test_a_service_that_does_not_stop_is_not_taken_apart(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_service, "unit_state", lambda _: {"ActiveState": "deactivating"})
    before = host.files("gpt-oss")
    with pytest.raises(EndError, match="does not stop"):
        end("remove", "gpt-oss", "", host.root)
    assert set(before) <= set(host.files("gpt-oss"))


def test_a_service_that_another_run_starts_is_left_alone_with_what_to_do(host: Host) -> None:
    with (
        alone(Ledger("gpt-oss", host.state)),
        pytest.raises(BusyError, match="tinderbox-job-start-gpt-oss-"),
    ):
        end("stop", "gpt-oss", "", host.root)
    assert host.commands == []
