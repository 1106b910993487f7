"""How much memory there is, by the machine and by control groups of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.hostside.memory_room import Room, cgroups_of, left_in, room

GIB = 1024**3


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    write(tmp_path / "proc/meminfo", f"MemAvailable: {100 * 1024**2} kB\nMemFree: {10 * 1024**2} kB\n")
    return tmp_path / "proc"


def version_one(folder: Path, limit: int, used: int, cache: int = 0) -> Path:
    write(folder / "memory.limit_in_bytes", f"{limit}\n")
    write(folder / "memory.usage_in_bytes", f"{used}\n")
    write(folder / "memory.stat", f"inactive_file 7\ntotal_inactive_file {cache}\ntotal_active_file {cache}\n")
    return folder


def version_two(folder: Path, limit: str, used: int, cache: int = 0) -> Path:
    write(folder / "memory.max", f"{limit}\n")
    write(folder / "memory.current", f"{used}\n")
    write(folder / "memory.stat", f"anon 5\ninactive_file {cache}\nactive_file {cache}\n")
    return folder


def test_without_a_limit_the_machine_counts(proc: Path, tmp_path: Path) -> None:
    unbounded = [version_one(tmp_path / "a", 9223372036854771712, GIB), version_two(tmp_path / "b", "max", GIB)]
    assert room([*unbounded, tmp_path / "gone"], proc) == Room(100 * GIB, 10 * GIB)


@pytest.mark.parametrize("make", [version_one, lambda folder, limit, *rest: version_two(folder, str(limit), *rest)])
def test_the_least_of_all_limits_counts_and_cache_is_free(proc: Path, tmp_path: Path, make: object) -> None:
    bounds = [make(tmp_path / "wide", 50 * GIB, 10 * GIB), make(tmp_path / "tight", 8 * GIB, 7 * GIB, GIB)]  # type: ignore[operator]
    assert room(bounds, proc).available == 3 * GIB
    assert room(bounds, proc).free == 10 * GIB


def test_more_than_the_limit_is_nothing_left(tmp_path: Path) -> None:
    assert left_in(version_two(tmp_path / "a", str(GIB), 2 * GIB)) == 0


def test_every_group_above_a_process_bounds_it(proc: Path, tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    (root / "memory/docker/abc/system.slice").mkdir(parents=True)
    write(proc / "7/cgroup", "9:name=systemd:/docker/abc\n4:memory:/docker/abc/system.slice\n0::/\n")
    assert cgroups_of(7, proc, root) == [
        root / "memory/docker/abc/system.slice",
        root / "memory/docker/abc",
        root / "memory/docker",
        root / "memory",
    ]


def test_also_where_there_is_only_one_hierarchy(proc: Path, tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    (root / "system.slice/docker-1.scope").mkdir(parents=True)
    write(proc / "7/cgroup", "0::/system.slice/docker-1.scope\n")
    assert cgroups_of(7, proc, root) == [root / "system.slice/docker-1.scope", root / "system.slice", root]
    assert cgroups_of(8, proc, root) == []
