"""What a host is left with by the program that takes layers back, on the lab hosts' file system with the real apt."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import docker
import pytest

from modules.lab.images import host_image
from modules.lab.layout import ROOT
from modules.lab.pieces.make_all import make_all
from modules.lab.pieces.rootfs import host_rootfs
from modules.lab.progress import Progress

pytestmark = pytest.mark.lab
_SCRIPT = Path(__file__).with_name("bare_removal.sh")


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    """Section → what was printed."""
    make_all([host_rootfs()], Progress())
    mounts = ["-v", f"{_SCRIPT}:/script.sh:ro", "-v", f"{ROOT / 'modules' / 'hostside'}:/programs:ro"]
    words = ["docker", "run", "--rm", "--network", "none", *mounts, host_image(docker.from_env(), host_rootfs())]
    done = subprocess.run([*words, "bash", "/script.sh"], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = re.split(r"^== (.+)\n", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def plan_in(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    return found


def test_all_that_was_put_there_is_named_with_its_layer(said: dict[str, str]) -> None:
    found = plan_in(said["plan"])
    titles = {(one["layer"], one["title"]) for one in found["going"]}
    assert titles >= {
        ("engine", "service svc"),
        ("engine", "watcher tinderbox-exporter.service"),
        ("images", "folder /var/lib/tinderbox/images"),
        ("weights", "folder /var/lib/tinderbox/encodings"),
        ("weights", "file /etc/tinderbox/hub-token.t"),
        ("system", "setting clocks"),
        ("system", "file /etc/docker/daemon.json"),
        ("system", "file /etc/apt/keyrings/tinderbox-x.gpg"),
        ("system", "package rsync"),
        ("system", "folder /usr/local/lib/tinderbox"),
    }
    staying = {one["title"]: one["why"] for one in found["staying"]}
    assert staying["package libcurl4"] == "curl needs it"
    assert "apt-get install --allow-downgrades curl=1" in staying["version of curl"]
    assert "access" not in {layer for layer, _ in titles}


def test_what_services_stand_on_stays_as_long_as_there_is_one(said: dict[str, str]) -> None:
    assert "this host has svc: ask for layer engine, too" in str(plan_in(said["system alone"])["refused"])
    assert said["images alone"].splitlines() == ["status 0"]


def test_all_goes_files_are_as_before_and_others_things_stay(said: dict[str, str]) -> None:
    assert said["all"].endswith("status 0\n"), said["all"]
    document, *left = said["left"].splitlines()
    assert document == '{ "dns" :["10.0.0.1"] }'
    assert left == [
        "/etc/sudoers.d/tinderbox-owner",
        "/etc/systemd/system/tinderbox-lab.service",
        "/etc/systemd/system/tinderbox-nightly-mine.service",
        "/var/lib/tinderbox/undo",
        "libcurl4",
    ]


def test_a_server_whose_place_a_service_had_taken_runs_again(said: dict[str, str]) -> None:
    titles = {one["title"]: one["note"] for one in plan_in(said["plan"])["going"]}
    assert titles["place taken by service svc"] == "unit old.service, which ran before, runs again"
    assert said["started"].splitlines() == ["enable --quiet old.service", "start old.service"]


def test_a_second_removal_has_nothing_to_do(said: dict[str, str]) -> None:
    assert plan_in(said["again"])["going"] == []
    assert said["again"].count("status 0") == 2


def test_what_opened_the_host_goes_by_its_own_name_alone(said: dict[str, str]) -> None:
    lines = said["access"].splitlines()
    plans = [json.loads(line)["going"] for line in lines if line.startswith("{")]
    titles = ["key of owner", "member of group docker owner", "rule of sudo /etc/sudoers.d/tinderbox-owner"]
    assert [one["title"] for one in plans[0]] == titles
    assert plans[1] == []
    assert lines[-2:] == ["ssh-ed25519 AAA own", "owner"]
