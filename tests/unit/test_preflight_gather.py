"""The gatherer, run as a host runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from modules.facts.machine import Machine, machine_state, source
from modules.facts.machine_state import MachineState
from modules.facts.parse.nvidia_smi import parse_gpus

COMMIT = "b" * 40


def gathered(request: dict[str, Any], path: str = "/nowhere") -> dict[str, Any]:
    """What the program prints with no program in reach but those in `path`."""
    done = subprocess.run(
        [sys.executable, "-c", source(), json.dumps(request)],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = done.stdout.splitlines()
    said: dict[str, Any] = json.loads(line)
    return said


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!{sys.executable}\n{text}")
    (folder / name).chmod(0o755)


def test_a_host_without_any_program_is_described_all_the_same() -> None:
    said = gathered({"paths": ["/nonexistent/deep/below"], "models": {}})
    assert said["gpu"] == [None]
    assert said["apps"] is None
    assert said["images"] is None
    assert said["machine"] == os.uname().machine
    assert said["python"].startswith("3.")
    assert said["disks"]["/nonexistent/deep/below"]["mount"] == "/"
    assert said["disks"]["/"]["total"] > said["disks"]["/"]["free"] > 0
    state = machine_state([json.dumps(said)])
    assert isinstance(state, MachineState)
    assert state.gpu_trouble == "nvidia-smi is not installed"
    assert state.memory.total > 0


def test_an_idle_gpu_is_asked_once_and_a_busy_one_three_times(tmp_path: Path) -> None:
    answer = "print('name, driver_version, utilization.gpu [%]')\nprint('NVIDIA GB10, 580.142, {} %')\n"
    program(tmp_path, "nvidia-smi", answer.format(89))
    assert len(gathered({"paths": [], "models": {}}, str(tmp_path))["gpu"]) == 1
    program(tmp_path, "nvidia-smi", answer.format(90))
    samples = gathered({"paths": [], "models": {}}, str(tmp_path))["gpu"]
    assert [parse_gpus(sample["output"])[0].utilization_pct for sample in samples] == [90.0, 90.0, 90.0]


def test_a_driver_that_does_not_know_a_field_is_asked_without_it(tmp_path: Path) -> None:
    program(
        tmp_path,
        "nvidia-smi",
        "import sys\n"
        "if 'clocks_event_reasons' in sys.argv[1]:\n"
        "    sys.exit('Field \"clocks_event_reasons.active\" is not a valid field to query.')\n"
        "print('name, driver_version')\nprint('NVIDIA GB10, 580.95.05')\n",
    )
    (sample,) = gathered({"paths": [], "models": {}}, str(tmp_path))["gpu"]
    assert parse_gpus(sample["output"])[0].driver == "580.95.05"


def test_programs_speak_english(tmp_path: Path) -> None:
    program(tmp_path, "docker", "import os\nprint(os.environ['LC_ALL'])\n")
    assert gathered({"paths": [], "models": {}}, str(tmp_path))["images"] == {"status": 0, "output": "C\n"}


@pytest.mark.parametrize("revision", [COMMIT, "main"])
def test_a_models_bytes_are_counted_once_through_links_and_for_its_revision_only(tmp_path: Path, revision: str) -> None:
    blobs, snapshots = tmp_path / "blobs", tmp_path / "snapshots"
    blobs.mkdir()
    for name, size in (("one", 8192), ("two", 16384), ("old", 65536), ("three.1a2b.incomplete", 32768)):
        (blobs / name).write_bytes(b"x" * size)
    for commit, names in ((COMMIT, ("one", "two")), ("c" * 40, ("old",))):
        (snapshots / commit / "deep").mkdir(parents=True)
        for name in names:
            (snapshots / commit / "deep" / name).symlink_to(blobs / name)
    (snapshots / COMMIT / "again").symlink_to(blobs / "one")
    (snapshots / COMMIT / "dangling").symlink_to(blobs / "gone")
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs" / "main").write_text(COMMIT)
    said = gathered({"paths": [], "models": {"m": {"directory": str(tmp_path), "revision": revision}}})
    assert said["models"]["m"] == {"snapshot": 8192 + 16384, "pieces": 32768, "checkpoint": None}


def test_the_command_takes_any_path_and_is_one_round_trip() -> None:
    command = str(Machine().command(paths=["/a'b; rm -rf /"], models={}))
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    state = Machine().process(done.stdout.splitlines())
    assert isinstance(state, MachineState)
    assert "/a'b; rm -rf /" in state.disks
