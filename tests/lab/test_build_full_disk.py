"""Docker's disk gets full in the middle of a build: a clear end, nothing lost, and the next run finishes.

What serves from that disk meanwhile is a container with a small server: an engine's image would need gigabytes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.builds import HEAD, TAIL, shown, stage
from tests.lab.lab_driver import Lab
from tests.lab.tiny_recipe import fleet_with, tiny

pytestmark = [pytest.mark.lab, pytest.mark.long]
# The one that serves nothing.
HOST = "spark-2"
# The base image fits in here, and what the recipe writes does not.
SMALL, LARGE = "520m", "1200m"
SERVER_IMAGE, PORT = "registry.lab:5000/python:3.11-slim-bookworm", 8931
FILL = "RUN head -c 400000000 /dev/urandom > /filled\n"


@pytest.fixture
def small_disk(lab: Lab) -> Iterator[None]:
    """Docker keeps everything on a small disk of its own."""
    run = lab.converge("deploys/runtime.py", fleet=lab.fleet_of(HOST))
    assert run.rc == 0, run.text
    lab.ssh(HOST, "sudo systemctl stop docker.service docker.socket")
    lab.ssh(HOST, f"sudo mount -t tmpfs -o size={SMALL} tmpfs /var/lib/docker && sudo systemctl start docker")
    serve = f"sudo docker run --detach --name server --network host {SERVER_IMAGE} python3 -m http.server {PORT}"
    lab.ssh(HOST, serve)
    yield
    lab.ssh(
        HOST,
        "sudo docker rm --force server; sudo systemctl stop docker.service docker.socket; sudo umount /var/lib/docker",
    )
    lab.ssh(HOST, "sudo systemctl start docker")


@pytest.fixture
def fleet(lab: Lab) -> Path:
    """A recipe that says too little of its size."""
    recipe = tiny(lab, HEAD + FILL + TAIL, name="tiny-fill", size_gib=0.01)
    return fleet_with(lab, HOST, recipe, name="fleet-tiny-fill")


def serving(lab: Lab) -> str:
    """Since when the server has run without a break; fails the test where it does not answer."""
    lab.ssh(HOST, f"curl --fail --silent --retry 20 --retry-connrefused --retry-delay 1 127.0.0.1:{PORT}/etc/hostname")
    state = lab.ssh(HOST, "sudo docker inspect -f '{{.State.Running}} {{.State.StartedAt}}' server").stdout.split()
    assert state[0] == "true"
    return state[1]


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_ends_the_build_and_with_room_the_next_run_finishes(lab: Lab, fleet: Path) -> None:
    since = serving(lab)
    full = stage(lab, fleet)

    assert full.rc == 1, full.text
    assert f"{HOST}: FAILED at Image | Image tiny-fill" in full.text
    assert any("No space left on device" in line or "no space left on device" in line for line in shown(full))
    assert "known failure (no-space): " in full.text
    # The step's files are gone again, and what was there is not.
    free = lab.ssh(HOST, "df --output=avail -k /var/lib/docker | tail -n 1").stdout
    assert int(free) > 50_000
    assert lab.ssh(HOST, "sudo docker image ls -q registry.lab:5000/python").stdout.split()

    assert serving(lab) == since

    lab.ssh(HOST, f"sudo mount -o remount,size={LARGE} /var/lib/docker")
    again = stage(lab, fleet)

    assert again.rc == 0, again.text
    assert "no change on any host" in stage(lab, fleet).stderr
    assert serving(lab) == since
