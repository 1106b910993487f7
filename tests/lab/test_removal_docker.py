"""Which images and build caches go with layer images: by a real dockerd, with others' things beside ours."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import docker
import pytest

from modules.lab.containers import _CAPABILITIES, _SECURITY
from modules.lab.images import host_image
from modules.lab.layout import ROOT
from modules.lab.pieces.make_all import make_all
from modules.lab.pieces.rootfs import host_rootfs
from modules.lab.progress import Progress

pytestmark = [pytest.mark.lab, pytest.mark.long]
_SCRIPT = Path(__file__).with_name("docker_removal.sh")
OURS, BASE, MINE = "tinderbox/x:0123456789ab", "registry.lab/base:1", "mine:1"


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """Section → what was printed."""
    make_all([host_rootfs()], Progress())
    words = ["docker", "run", "--rm", "--network", "none", "--cgroupns", "host", "--device-cgroup-rule", "a *:* rwm"]
    words += [word for name in _CAPABILITIES for word in ("--cap-add", name)]
    words += [word for name in _SECURITY for word in ("--security-opt", name)]
    words += ["--tmpfs", "/run", "--tmpfs", "/tmp:exec", "-v", "/sys/fs/cgroup:/sys/fs/cgroup:rw"]
    words += ["-v", f"{_SCRIPT}:/script.sh:ro", "-v", f"{ROOT / 'modules' / 'hostside'}:/programs:ro"]
    image = host_image(docker.from_env(), host_rootfs())
    done = subprocess.run(
        [*words, image, "bash", "/script.sh"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    parts = re.split(r"^== (.+)\n", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def plan_in(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.splitlines()[0])
    return found


def test_an_image_that_a_container_of_others_uses_stays_with_its_base(said: dict[str, str]) -> None:
    staying = {one["title"]: one["why"] for one in plan_in(said["plan"])["staying"]}
    assert staying == {
        f"image {OURS}": "container mine uses it",
        f"base image {BASE}": f"image {OURS}, which stays, may be built on it",
    }
    assert {MINE, OURS, BASE} <= set(said["beside mine"].splitlines())


def test_both_go_when_nobody_uses_them_and_others_images_stay(said: dict[str, str]) -> None:
    lines = said["alone"].splitlines()
    assert lines[:3] == [f"removed image {OURS}", f"removed base image {BASE}", "status 0"]
    assert lines[3:-1] == [MINE]
    assert plan_in(said["again"])["going"] == []
    assert said["notes"].split() == ["builds.json"]


def test_only_what_builds_of_ours_left_in_the_cache_goes(said: dict[str, str]) -> None:
    def count(text: str) -> int:
        return int(text.rsplit(maxsplit=1)[-1])

    (title,) = (one["title"] for one in plan_in(said["plan"])["going"] if one["title"].startswith("build cache"))
    ours = int(re.findall(r"(\d+) records", title)[0])
    assert ours > 0
    assert 0 < count(said["alone"]) == count(said["beside mine"]) == count(said["before"]) - ours
