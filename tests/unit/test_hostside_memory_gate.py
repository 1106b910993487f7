"""The memory gate, on made-up machines."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from modules.hostside import memory_gate
from modules.hostside.engine_processes import EngineProcess
from modules.hostside.load_turn import Turn
from modules.hostside.memory_gate import WAIT_S, await_room, holders, main, others
from modules.hostside.memory_room import meminfo

GIB = 1024**3


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sync", lambda: None)
    monkeypatch.setattr(memory_gate, "run", lambda *_: None)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A machine with 100 GiB available, 10 of them free."""
    machine(tmp_path, available=100, free=10)
    (tmp_path / "sys/vm").mkdir(parents=True)
    (tmp_path / "sys/vm/drop_caches").write_text("0\n")
    return tmp_path


def machine(proc: Path, *, available: int, free: int) -> None:
    rows = {"MemTotal": 120, "MemFree": free, "MemAvailable": available}
    (proc / "meminfo").write_text("".join(f"{name}: {gib * 1024**2} kB\n" for name, gib in rows.items()) + "Odd:\n")


def never(_: float) -> None:
    pytest.fail("nothing was to be waited for")


def dropped(proc: Path) -> bool:
    return (proc / "sys/vm/drop_caches").read_text() == "3\n"


def test_sizes_are_bytes(proc: Path) -> None:
    assert meminfo(proc)["MemTotal"] == 120 * GIB


def test_what_is_free_needs_no_dropping(proc: Path) -> None:
    assert await_room(5 * GIB, proc, sleep=never, bounds=()) == 100 * GIB
    assert not dropped(proc)


def test_page_cache_in_the_way_is_dropped(proc: Path) -> None:
    assert await_room(90 * GIB, proc, sleep=never, bounds=()) == 100 * GIB
    assert dropped(proc)


def test_page_cache_that_can_not_be_dropped_is_borne(proc: Path) -> None:
    (proc / "sys/vm/drop_caches").unlink()
    (proc / "sys/vm").rmdir()
    assert await_room(90 * GIB, proc, sleep=never, bounds=()) == 100 * GIB


def test_memory_that_comes_back_late_is_waited_for(proc: Path) -> None:
    pauses: list[float] = []

    def stopped_at_last(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == 3:
            machine(proc, available=119, free=119)

    assert await_room(110 * GIB, proc, sleep=stopped_at_last, bounds=()) == 119 * GIB
    assert len(pauses) == 3


def test_the_wait_ends(proc: Path) -> None:
    pauses: list[float] = []
    assert await_room(110 * GIB, proc, sleep=pauses.append, bounds=()) == 100 * GIB
    assert WAIT_S <= sum(pauses) <= WAIT_S + 5


def test_the_largest_process_is_named_first(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid, name, gib in ((7, "small", 1), (8, "python3", 40), (9, "kthreadd", None)):
        (proc / str(pid)).mkdir()
        size = f"VmRSS:\t{gib * 1024**2} kB\n" if gib else ""
        (proc / str(pid) / "status").write_text(f"Name:\t{name}\nState:\tS (sleeping)\n{size}")
    monkeypatch.setattr(memory_gate, "run", lambda *_: "4242, /opt/ollama, 61000 MiB\n")
    assert holders(proc) == [
        "python3 (pid 8): 40.0 GiB",
        "small (pid 7): 1.0 GiB",
        "on the GPU: 4242, /opt/ollama, 61000 MiB",
    ]


def test_a_start_without_room_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"needs": 90 * GIB}))
    monkeypatch.setattr(memory_gate, "await_room", lambda needs: needs - 5 * GIB)
    assert main([str(plan)]) == 1
    assert "refused: 90.0 GiB are needed, 85.0 GiB available" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "no json", "{}", '{"needs": 0}', '{"needs": null}'])
def test_without_a_plan_every_start_passes(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_gate, "await_room", pytest.fail)
    (tmp_path / "plan.json").write_text(text)
    assert main([str(tmp_path / "plan.json")]) == 0
    assert main([str(tmp_path / "missing.json")]) == 0


def test_a_limit_of_its_control_group_counts_as_the_machines_memory(proc: Path, tmp_path: Path) -> None:
    group = tmp_path / "group"
    group.mkdir()
    for name, text in (("memory.max", f"{8 * GIB}"), ("memory.current", f"{3 * GIB}"), ("memory.stat", "")):
        (group / name).write_text(text)
    assert await_room(5 * GIB, proc, sleep=never, bounds=[group]) == 5 * GIB
    assert await_room(6 * GIB, proc, sleep=lambda _: None, bounds=[group]) == 5 * GIB


MINE, NEIGHBOUR = EngineProcess(7, "vllm serve", "gpt-oss", "c"), EngineProcess(8, "vllm serve", "small", "d")
STRANGER = EngineProcess(9, "llama-server")


def test_services_of_the_same_fleet_file_are_no_strangers() -> None:
    assert others(["p"], ["small"], look=lambda _: [NEIGHBOUR], sleep=never) == []


def test_a_stranger_gets_a_minute_to_end_and_is_then_told() -> None:
    pauses: list[float] = []
    assert others(["p"], ["small"], lambda _: [MINE, NEIGHBOUR, STRANGER], pauses.append) == [MINE, STRANGER]
    assert WAIT_S <= sum(pauses) <= WAIT_S + 5
    ending = [[STRANGER], []]
    assert others(["p"], [], lambda _: ending.pop(0), lambda _: None) == []


def plan_with_engines(folder: Path) -> list[str]:
    document = {"service": "gpt-oss", "needs": GIB, "engines": ["vllm serve"]}
    (folder / "plan.json").write_text(json.dumps(document))
    (folder / "services.json").write_text(json.dumps({"services": ["gpt-oss", "small"]}))
    return [str(folder / "plan.json"), "--beside", str(folder / "services.json"), "--before", str(folder / "r" / "b")]


def test_a_start_beside_a_stranger_is_refused_and_nothing_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(memory_gate, "others", lambda *_: [MINE, STRANGER])
    monkeypatch.setattr(os, "kill", pytest.fail)
    assert main(plan_with_engines(tmp_path)) == 1
    told = capsys.readouterr().out
    assert "refused: another engine runs here" in told
    assert "vllm serve (pid 7 in container c, service gpt-oss of Tinderbox); llama-server (pid 9)" in told


def test_its_own_service_is_not_beside_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def nobody(*words: object) -> list[EngineProcess]:
        asked.extend(words)
        return []

    monkeypatch.setattr(memory_gate, "others", nobody)
    monkeypatch.setattr(memory_gate, "await_room", lambda needs: needs)
    assert main(plan_with_engines(tmp_path)) == 0
    assert asked == [["vllm serve"], {"small"}]
    # What a stop waits for afterwards.
    assert int((tmp_path / "r" / "b").read_text()) == GIB


def test_of_several_services_each_waits_for_its_turn_before_it_looks_at_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = plan_with_engines(tmp_path)
    services = {"services": ["gpt-oss", "small"], "order": ["small", "gpt-oss"], "start_s": {"small": 60, "gpt-oss": 9}}
    (tmp_path / "services.json").write_text(json.dumps(services))
    taken: list[object] = []

    def in_vain(turn: Turn, invocation: str, say: object) -> str:
        taken.append((turn.service, turn.order, turn.wait_s, invocation))
        return "service small, which loads"

    monkeypatch.setenv("INVOCATION_ID", "abc")
    monkeypatch.setattr("load_turn.Turn.take", in_vain)
    monkeypatch.setattr(memory_gate, "others", pytest.fail)
    monkeypatch.setattr(memory_gate, "await_room", pytest.fail)
    assert main(words) == 1
    assert taken == [("gpt-oss", ("small", "gpt-oss"), 60, "abc")]
    assert "memory-gate: refused: service small, which loads, was waited for in vain" in capsys.readouterr().out


def test_who_is_alone_on_the_host_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("load_turn.Turn.take", pytest.fail)
    monkeypatch.setattr(memory_gate, "others", lambda *_: [])
    monkeypatch.setattr(memory_gate, "await_room", lambda needs: needs)
    assert main(plan_with_engines(tmp_path)) == 0
