"""The screen: what stands in a row, and what below it."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from modules.status.remarks import remarks
from modules.status.report import GateStatus, GpuStatus, HostStatus, ServiceStatus, StatusReport, Stranger, Watchdog
from modules.status.table import queue_text, table_of, tokens_text

# Enough for a row of one line, with names as long as those below.
WIDE = 132
NOW = "2026-11-30T10:00:00Z"
_GIB = 1024**3
SERVES = ServiceStatus(
    name="gpt-oss", deployed=True, state="running", for_s=7200, release="0123456789ab", tokens_s=120.4,
    prompt_tokens_s=0.0, running=3, waiting=12, kv_percent=41.5, claim=70 * _GIB, used=63 * _GIB,
    gate=GateStatus(release="0123456789ab", finished="2026-11-30T08:00:00Z", verdict="PASS", metric="tg", figure=54.2),
    watchdog=Watchdog(active=True, generated_s=12, misses=0),
)  # fmt: skip


def host(name: str = "spark-1", *services: ServiceStatus, **more: Any) -> HostStatus:
    gpu = GpuStatus(name="NVIDIA GB10", simulated=False, clock_mhz=2418, power_w=31.5, temperature_c=61)
    fields = {"answers": True, "programs": "same", "root": True, "available": 50 * _GIB, "gpu": gpu, **more}
    return HostStatus(fleet="office", name=name, address="192.0.2.1", services=services or (SERVES,), **fields)


def silent(name: str = "spark-9", seen: str | None = None) -> HostStatus:
    return HostStatus(
        fleet="office", name=name, address="192.0.2.9", answers=False, seen=seen, trouble="Could not connect",
        services=(ServiceStatus(name="gpt-oss"),),
    )  # fmt: skip


def screen(*hosts: HostStatus, width: int = WIDE) -> str:
    console = Console(width=width, force_terminal=False, highlight=False)
    with console.capture() as said:
        console.print(table_of(StatusReport(at=NOW, seconds=1.9, hosts=hosts), width))
    return said.get()


def below(*hosts: HostStatus) -> list[str]:
    return [text for text, _ in remarks(StatusReport(at=NOW, seconds=1.9, hosts=hosts))]


def test_a_row_tells_all_of_a_service() -> None:
    (row,) = [line for line in screen(host()).splitlines() if "spark-1" in line]
    assert row.split()[:8] == ["spark-1", "gpt-oss", "01234567", "running", "2", "h", "0", "min"]
    assert row.split()[8:12] == ["120", "3+12", "42", "%"]
    assert "63G of 70G, free 50G" in row
    assert "61°C 2418MHz 32W" in row
    assert "passed 54.2, 2 h" in row
    assert row.rstrip().endswith("text 12 s ago")


@pytest.mark.parametrize("width", [WIDE, 100, 80])
def test_sixteen_hosts_stand_whole_on_a_screen(width: int) -> None:
    text = screen(*(host(f"spark-{number:02}") for number in range(14)), silent(), silent("spark-8"), width=width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    assert len(text.splitlines()) <= (22 if width >= WIDE else 40)
    assert text.count("unknown") == 2
    assert text.count("running") == 14


def test_of_a_service_that_is_stopped_it_is_told_what_starts_it() -> None:
    stopped = ServiceStatus(name="gpt-oss", deployed=True, state="stopped")
    assert below(host("spark-1", stopped)) == ["spark-1/gpt-oss: stopped: make converge starts it"]


def test_a_silent_host_is_neither_failed_nor_fine() -> None:
    (row,) = [line for line in screen(silent(seen="2026-11-30T09:30:00Z")).splitlines() if "spark-9" in line]
    assert row.split()[:4] == ["spark-9", "gpt-oss", "?", "unknown"]
    assert "< 30 min" in row
    assert not {"running", "failed", "stopped", "passed", "idle"} & set(row.split())
    assert below(silent(seen="2026-11-30T09:30:00Z")) == [
        "spark-9: unknown, it last answered at 2026-11-30T09:30:00Z: Could not connect"
    ]
    assert "never had an answer" in below(silent())[0]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"tokens_s": 0.0, "prompt_tokens_s": 0.0, "running": 0}, "idle"),
        ({"tokens_s": 0.0, "prompt_tokens_s": 0.0, "running": 2}, "0"),
        ({"tokens_s": 9.44}, "9.4"),
        ({"tokens_s": None}, "?"),
        ({"state": "stopped"}, "-"),
        ({"state": "unknown", "tokens_s": None}, "?"),
        ({"worker_of": "spark-2"}, "-"),
    ],
)
def test_tokens(more: dict[str, Any], text: str) -> None:
    assert tokens_text(SERVES.model_copy(update=more)) == text


def test_a_queue_that_is_known_by_half() -> None:
    assert queue_text(SERVES.model_copy(update={"waiting": None})) == "3+?"
    assert queue_text(SERVES.model_copy(update={"waiting": None, "running": None})) == "?"


def test_what_has_no_room_stands_below() -> None:
    stranger = Stranger(where="GPU", pid=77, name="python3", container="comfy", memory=2 * _GIB)
    failed = SERVES.model_copy(update={"state": "failed", "why": "failed to start at 10:00", "wanted": False})
    told = below(host("spark-1", failed, strangers=(stranger,), programs="other", root=False, jobs=("image-1",)))
    assert "spark-1: not of Tinderbox, on GPU: python3 (pid 77, in container comfy, 2.0G)" in told
    assert "spark-1/gpt-oss: failed to start at 10:00" in told
    assert "spark-1/gpt-oss: the fleet file has it no more" in told
    assert any("another version of Tinderbox" in line for line in told)
    assert any("sudo asks for a password" in line for line in told)
    assert "spark-1: job image-1 is under way" in told


def test_nothing_is_said_below_of_a_host_that_is_as_it_should_be() -> None:
    assert below(host()) == []


def test_a_host_without_anything_of_tinderbox_says_so() -> None:
    bare = ServiceStatus(name="gpt-oss", deployed=False, state="stopped")
    told = below(host("spark-1", bare, programs="none"))
    assert told == ["spark-1: nothing of Tinderbox is deployed here yet: make converge"]
    assert "stopped" in screen(host("spark-1", bare, programs="none"))


def test_hosts_of_several_fleets_are_told_apart() -> None:
    other = host().model_copy(update={"fleet": "lab"})
    assert {"office/spark-1", "lab/spark-1"} <= set(screen(host(), other).split())
    assert below(host(), other.model_copy(update={"root": False}))[0].startswith("lab/spark-1: sudo asks")
