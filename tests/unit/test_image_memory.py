"""What memory a build may take, whom it may stop for that, and that they run again afterwards."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modules.hostside import build_memory, job, pause_services
from modules.hostside.build_memory import MemoryShortError, Need, compilers, room, short_gib
from modules.hostside.pause_services import ServiceError, paused, running
from modules.hostside.progress import Progress

NEED = Need(compiler_gib=8, keep_gib=16, stop_services=False)
MAY_STOP = Need(compiler_gib=8, keep_gib=16, stop_services=True)
NOTHING_COMPILED = Need(compiler_gib=0, keep_gib=16, stop_services=False)


def meminfo(available_gib: float) -> str:
    return f"MemTotal: 125000000 kB\nMemAvailable:   {int(available_gib * 1024**2)} kB\n"


@pytest.mark.parametrize(
    ("available_gib", "cpus", "jobs"),
    # jobs = min(cpus, (MemAvailable - 16) / 8), at least one
    [(119, 20, 12), (119, 4, 4), (40, 20, 3), (24, 20, 1), (23.9, 20, 1), (2, 20, 1)],
)
def test_only_as_many_compilers_run_as_memory_bears(available_gib: float, cpus: int, jobs: int) -> None:
    assert compilers(meminfo(available_gib), cpus, NEED) == jobs


def test_what_compiles_nothing_needs_no_memory_for_it() -> None:
    assert short_gib(meminfo(0.5), NOTHING_COMPILED) == 0
    assert compilers(meminfo(0.5), 20, NOTHING_COMPILED) == 20


@pytest.mark.parametrize(("available_gib", "missing"), [(119, 0), (24, 0), (20, 4), (2, 22)])
def test_one_compiler_and_what_is_kept_must_fit(available_gib: float, missing: float) -> None:
    assert short_gib(meminfo(available_gib), NEED) == pytest.approx(missing, abs=0.01)


class Systemd:
    """Units that can be started and stopped; `log`: what was asked, without the looks."""

    def __init__(self, units: dict[str, str]) -> None:
        self.units = units
        self.log: list[str] = []
        self.refuses: set[str] = set()

    def run(self, argv: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        verb, *words = argv[1:]
        if verb == "show":
            return subprocess.CompletedProcess(argv, 0, self.units.get(words[-1], "inactive") + "\n", "")
        self.log.append(" ".join([verb, *words]))
        names = [word for word in words if not word.startswith("--")]
        if self.log[-1] in self.refuses:
            return subprocess.CompletedProcess(argv, 1, "", "Job failed.")
        for name in names:
            self.units[name] = "active" if verb == "start" else "inactive"
        return subprocess.CompletedProcess(argv, 0, "", "")


GPT, EMBED = "tinderbox-gpt-oss.service", "tinderbox-embed.service"
AGAIN = [f"reset-failed {GPT}", f"start --no-block {GPT}", f"start {GPT}"]


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    """A host with two services of which one runs, and a job's directory."""
    for name in ("gpt-oss", "embed"):
        (tmp_path / "ledger" / name).mkdir(parents=True)
    found = Systemd({GPT: "active", EMBED: "inactive"})
    monkeypatch.setattr(subprocess, "run", found.run)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(pause_services, "LEDGER", tmp_path / "ledger")
    monkeypatch.setattr(build_memory, "running", lambda: running(tmp_path / "ledger"))
    monkeypatch.setenv("TINDERBOX_JOB_DIR", str(tmp_path))
    return found


def memory(systemd: Systemd, before: float, after: float) -> Callable[[], str]:
    """Another figure while the service is stopped."""
    return lambda: meminfo(before if systemd.units[GPT] == "active" else after)


def test_nothing_is_stopped_where_memory_does_not_demand_it(systemd: Systemd) -> None:
    with room(MAY_STOP, Progress(), memory(systemd, 40, 119)) as jobs:
        assert jobs >= 1

    assert systemd.log == []


def test_nothing_is_stopped_without_leave_and_the_refusal_says_what_to_do(systemd: Systemd) -> None:
    with (
        pytest.raises(MemoryShortError, match=r"takes 8 GiB, 16 GiB are kept .* 20\.0 GiB are available") as refused,
        room(NEED, Progress(), memory(systemd, 20, 119)),
    ):
        pass

    assert GPT in str(refused.value)
    assert EMBED not in str(refused.value)
    assert "build.stop_engines: true" in str(refused.value)
    assert systemd.log == []


def test_where_allowed_the_services_that_run_are_stopped_and_ready_again_afterwards(
    systemd: Systemd, tmp_path: Path
) -> None:
    with room(MAY_STOP, Progress(), memory(systemd, 20, 119)):
        assert systemd.units[GPT] == "inactive"
        left = json.loads((tmp_path / job.AFTERWARDS).read_text())
        assert left == {"commands": [["systemctl", "reset-failed", GPT], ["systemctl", "start", "--no-block", GPT]]}

    assert systemd.log == [f"stop {GPT}", *AGAIN]
    assert systemd.units == {GPT: "active", EMBED: "inactive"}
    assert not (tmp_path / job.AFTERWARDS).exists()


def test_they_run_again_also_when_the_build_fails(systemd: Systemd) -> None:
    with pytest.raises(RuntimeError, match="build"), room(MAY_STOP, Progress(), memory(systemd, 20, 119)):
        raise RuntimeError("build")

    assert systemd.units[GPT] == "active"


def test_they_run_again_where_even_so_there_is_not_enough(systemd: Systemd) -> None:
    with (
        pytest.raises(MemoryShortError, match="End what takes the memory"),
        room(MAY_STOP, Progress(), memory(systemd, 20, 21)),
    ):
        pass

    assert systemd.log == [f"stop {GPT}", *AGAIN]


def test_without_a_service_to_stop_the_refusal_does_not_speak_of_any(systemd: Systemd) -> None:
    systemd.units[GPT] = "failed"

    with pytest.raises(MemoryShortError) as refused, room(MAY_STOP, Progress(), lambda: meminfo(20)):
        pass

    assert "stop_engines" not in str(refused.value)
    assert systemd.log == []


def test_a_service_that_does_not_come_back_is_told(systemd: Systemd) -> None:
    systemd.refuses.add(f"start {GPT}")

    told = f"{GPT} ran before the build and did not get ready again: journalctl"
    with pytest.raises(ServiceError, match=told), paused([GPT], Progress()):
        pass

    assert systemd.log[1:] == AGAIN


class Doors:
    """Services that gateways send requests to; `closed`: those that take none."""

    def __init__(self, *closed: str) -> None:
        self.closed = set(closed)

    def __call__(self, unit: str) -> Any:
        return SimpleNamespace(
            has_gateway=True,
            is_closed=unit in self.closed,
            hold=lambda _: self.closed.add(unit),
            open=lambda: self.closed.discard(unit),
        )


def test_what_took_requests_takes_them_again_also_beside_one_that_does_not_come_back(
    systemd: Systemd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doors = Doors(EMBED)
    monkeypatch.setattr(pause_services, "_door", doors)
    systemd.refuses.add(f"start {EMBED}")

    left: list[list[str]] = []

    def build() -> None:
        assert doors.closed == {EMBED, GPT}
        left.extend(json.loads((tmp_path / job.AFTERWARDS).read_text())["commands"])

    with pytest.raises(ServiceError), paused([EMBED, GPT], Progress()):
        build()

    # Not the one that was to take none before its gate.
    assert doors.closed == {EMBED}
    # Also where the program is killed meanwhile.
    assert [command[1:] for command in left[2:]] == [[pause_services._DRAIN, "open", "gpt-oss"]]


def test_a_job_that_was_killed_does_at_its_end_what_its_program_could_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(job, "_host_ends", lambda: False)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    (tmp_path / job.AFTERWARDS).write_text(json.dumps({"commands": [["systemctl", "start", GPT]]}))

    job.finish(tmp_path)
    job.finish(tmp_path)

    assert ran == [["systemctl", "start", GPT]]


def test_at_the_hosts_own_end_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(job, "_host_ends", lambda: True)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    (tmp_path / job.AFTERWARDS).write_text(json.dumps({"commands": [["systemctl", "start", GPT]]}))

    job.finish(tmp_path)

    assert ran == []
