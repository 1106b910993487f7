"""The suite that users run against their hosts says what is wrong with one, and a run puts it right."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from modules.fleet.lock import lock_path
from modules.lab.model.repository import COMMIT, REPOSITORY
from modules.release.layout import ENCODINGS, snapshot_directory
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = pytest.mark.lab
HOST = "spark-1"
SHARD = f"{snapshot_directory('/var/lib/tinderbox/huggingface', REPOSITORY, COMMIT)}/model-00003-of-00003.safetensors"
ENCODING = str(ENCODINGS / "o200k_base.tiktoken")
# Keeps the shard's size and time, as a disk that rots does.
FLIP = """
import os
import sys

path = sys.argv[1]
before = os.stat(path)
with open(path, "r+b") as file:
    file.seek(before.st_size // 2)
    byte = file.read(1)[0]
    file.seek(before.st_size // 2)
    file.write(bytes([byte ^ 1]))
os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
"""


@dataclass(frozen=True)
class Damage:
    """What is done to the host; which checks then fail, and with what words; the stage that repairs it.

    `fetches`: a pattern of every path that the repair asks of the mirror.
    """

    inflict: Callable[[Served], str]
    failing: frozenset[str]
    cause: str
    stage: str
    fetches: str = r"^$"


def _retag(served: Served) -> str:
    base = "$(docker image ls -q registry.lab:5000/python)"
    return f"docker tag {base} $(docker inspect -f '{{{{.Config.Image}}}}' {served.container})"


DAMAGES = {
    "the unit is stopped": Damage(
        lambda served: f"systemctl stop {served.unit}",
        frozenset(
            {
                "test_the_unit_is_valid_enabled_and_active",
                "test_it_is_watched",
                "test_it_answers_with_text",
                "test_the_container_runs_the_image_in_force",
            }
        ),
        r"spark-1: tinderbox-gpt-oss\.service is inactive \(dead, result success\)",
        "engine",
    ),
    "a shard is flipped by one byte": Damage(
        lambda _: f"python3 -c {quote(FLIP)} {SHARD}",
        frozenset({"test_every_file_of_every_model_has_the_hash_of_its_hub"}),
        rf"spark-1: {REPOSITORY}: {SHARD}: sha256 \w+, the hub publishes \w+; run deploys/weights\.py",
        "weights",
        fetches=r"/model-00003-of-00003\.safetensors$",
    ),
    "an encoding is truncated": Damage(
        lambda _: f"truncate --size 1000 {ENCODING}",
        frozenset({"test_every_encoding_has_the_published_hash"}),
        rf"spark-1: {ENCODING} is truncated or altered \(sha256 \w+\); run deploys/encodings\.py",
        "encodings",
        fetches=r"^/o200k_base\.tiktoken$",
    ),
    "the image is retagged": Damage(
        _retag,
        frozenset({"test_the_image_in_force_is_the_one_that_was_built", "test_the_container_runs_the_image_in_force"}),
        r"spark-1: tinderbox/vllm-cpu:\w+ was retagged, sha256:\w+ was built as something else; run deploys/image\.py",
        "image",
    ),
    "what was seen in the image is lost from the ledger": Damage(
        lambda _: "rm /var/lib/tinderbox/ledger/gpt-oss/*.attestation.json",
        frozenset({"test_the_ledger_keeps_what_was_seen_in_the_image_in_force"}),
        r"spark-1: what was seen in tinderbox/vllm-cpu:\w+ of gpt-oss is missing or altered in .*; run deploys/engine",
        "engine",
    ),
    "the toolkit package is removed": Damage(
        lambda _: "apt-get -qq remove -y cuda-toolkit-13-0 cuda-nvcc-13-0",
        frozenset({"test_the_package_is_installed_at_its_version", "test_the_compiler_has_native_fp4"}),
        r"spark-1: package cuda-toolkit-13-0 is not installed; run deploys/cuda\.py",
        "cuda",
        fetches=r"^/(cuda|container-toolkit)/|^/key\.asc$",
    ),
}


@pytest.fixture
def damage(request: pytest.FixtureRequest, lab: Lab, served: Served) -> Damage:
    """A damage, done."""
    damage = DAMAGES[request.param]
    lab.ssh(HOST, f"sudo sh -c {quote(damage.inflict(served))}")
    return damage


def verify(lab: Lab, fleet: Path, *arguments: str) -> Run:
    """`pytest tests/verify`, as `make verify` runs it."""
    argv = [sys.executable, "-m", "pytest", "tests/verify", "-p", "no:cacheprovider", *arguments]
    return lab.tinderbox(argv, fleet=fleet)


def failing(run: Run) -> set[str]:
    """Names of the checks that failed."""
    return set(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)\[", run.stdout, re.MULTILINE))


def test_a_converged_host_passes(lab: Lab, main_fleet: Path, served: Served) -> None:
    run = verify(lab, main_fleet)
    assert run.rc == 0, run.text
    assert " passed" in run.stdout
    assert "skipped" not in run.stdout


def test_it_names_a_release_that_is_not_the_wanted_one(lab: Lab, main_fleet: Path, served: Served) -> None:
    def change(fleet: dict[str, Any]) -> None:
        fleet["hosts"] = {HOST: fleet["hosts"][HOST]}
        fleet["defaults"]["services"]["gpt-oss"]["flags"] = {"max-num-seqs": 7}

    fleet = lab.write_fleet("another-wish", change)
    lock_path(fleet).write_text(lock_path(main_fleet).read_text())
    run = verify(lab, fleet)
    assert failing(run) == {"test_the_release_in_force_is_the_one_that_the_fleet_file_wants"}, run.text
    assert re.search(r"spark-1: release \w{12} of gpt-oss is in force, and the fleet file wants \w{12}", run.stdout)


@pytest.mark.parametrize("damage", DAMAGES, indirect=True)
def test_it_names_the_damage_and_the_stage_that_repairs_it(
    lab: Lab, main_fleet: Path, served: Served, damage: Damage
) -> None:
    started, asked = served.invocation(), len(lab.requests())
    try:
        run = verify(lab, main_fleet)
    finally:
        repair = lab.converge(f"deploys/{damage.stage}.py", fleet=main_fleet)
    assert run.rc == 1, run.text
    assert failing(run) == damage.failing, run.text
    assert re.search(damage.cause, run.stdout), run.text
    assert repair.rc == 0, repair.text
    assert f"{HOST}: changed 1:" in repair.stderr
    for each in lab.requests(asked, HOST):
        assert re.search(damage.fetches, each["path"]), each
    if damage.stage != "engine":
        assert served.invocation() == started
    again = verify(lab, main_fleet, "-k", " or ".join(sorted(damage.failing)))
    assert again.rc == 0, again.text
