"""More hosts for a lab, each a copy of one that has converged: what is measured comes after."""

from __future__ import annotations

import os
import subprocess
import sys

from modules.lab.layout import ROOT, Layout
from modules.lab.up import HOST_IMAGE


def copy_host(layout: Layout, source: str, count: int) -> None:
    """Have `count` hosts in the lab; those that are new are copies of `source`, with its containers and its keys.

    What is copied is what a restarted host has on its disks, so a copy also starts the services that it has.
    """
    image = f"tinderbox-lab/copied-{layout.name}"
    container = layout.container(source)
    _docker("stop", container)
    _docker("commit", container, image)
    for number in range(1, count + 1):
        host = layout.host(number)
        volume = layout.docker_volume(host)
        if host == source or volume in _docker("volume", "ls", "--quiet").split():
            continue
        labels = [word for key, value in layout.labels.items() for word in ("--label", f"{key}={value}")]
        _docker("volume", "create", *labels, volume)
        binds = ["-v", f"{layout.docker_volume(source)}:/from:ro", "-v", f"{volume}:/to"]
        _docker("run", "--rm", *binds, "--entrypoint", "cp", image, "-a", "/from/.", "/to/")
    command = [sys.executable, "-m", "modules.lab", "up", "--name", layout.name, "--hosts", str(count)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {HOST_IMAGE: image}, check=True, capture_output=True)


def forget_copies(layout: Layout) -> None:
    """Remove the image that they were made of, once they are gone."""
    subprocess.run(["docker", "image", "rm", f"tinderbox-lab/copied-{layout.name}"], check=False, capture_output=True)


def _docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout
