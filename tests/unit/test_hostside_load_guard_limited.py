"""The load guard against a real eater of memory in a real control group, beside what the kernel does without it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from modules.hostside import load_guard
from modules.hostside.memory_room import CGROUPS

MIB = 1024**2
LIMIT, RESERVE = 384 * MIB, 512 * MIB
_EATER = "import time\ntaken = []\nwhile True:\n    taken.append(b'x' * 2**23)\n    time.sleep(0.1)\n"
# The page cache of the machine that tests run on is left alone.
_GUARD = (
    f"import sys; sys.path.insert(0, {str(Path(load_guard.__file__).parent)!r}); import load_guard; "
    "load_guard.drop_page_cache = lambda **_: False; sys.exit(load_guard.main())"
)


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of `LIMIT` bytes; the test is skipped where none can be made."""
    first = CGROUPS / "memory"
    path = (first if first.is_dir() else CGROUPS) / f"tinderbox-test-{os.getpid()}"
    limit, swap = (
        ("memory.limit_in_bytes", "memory.swappiness") if first.is_dir() else ("memory.max", "memory.swap.max")
    )
    try:
        path.mkdir()
        (path / limit).write_text(str(LIMIT))
    except OSError as error:
        with contextlib.suppress(OSError):
            path.rmdir()
        pytest.skip(f"no control group can be made here: {error}")
    with contextlib.suppress(OSError):
        (path / swap).write_text("0")
    yield path
    path.rmdir()


def oom_kills(group: Path) -> int:
    """Of processes in the group, by the kernel."""
    text = next(path.read_text() for path in (group / "memory.events", group / "memory.oom_control") if path.exists())
    rows = (line.split() for line in text.splitlines())
    return int(next(value for name, value in rows if name == "oom_kill"))


@contextlib.contextmanager
def eater(group: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that takes memory until somebody ends it."""
    words = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$0" -c "$1"', sys.executable, _EATER]
    with subprocess.Popen(words) as process:
        try:
            yield process
        finally:
            process.kill()


def test_without_the_guard_the_kernel_kills(group: Path) -> None:
    with eater(group) as process:
        assert process.wait(60) == -9
    assert oom_kills(group) == 1


def test_with_the_guard_it_does_not_come_to_that(group: Path, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(f'{{"reserve": {RESERVE}}}')
    with eater(group) as process:
        (tmp_path / "docker").write_text(f"#!/bin/sh\necho {process.pid}\n")
        (tmp_path / "docker").chmod(0o755)
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        words = [sys.executable, "-c", _GUARD, "c", str(tmp_path / "m.json"), "--parent", str(os.getpid())]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == load_guard.STOPPED, done.stdout + done.stderr
        assert process.wait(10) == -9
    assert "load-guard: stopped the engine: it was loading, and 0." in done.stdout
    assert oom_kills(group) == 0
