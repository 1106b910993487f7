"""A lab for measuring converged re-runs: hosts that serve, brought to one and the same state by Tinderbox and Ansible.

The first host is made by Tinderbox from a bare login, the second one by the playbook; that is what their first converge
is measured by. The second one goes then, and every further host is a copy of the first (see `copied_hosts`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.ansible_playbook import Playbook
from benchmarks.copied_hosts import copy_host, forget_copies
from benchmarks.cost import Cost, costing, cpu_of
from modules.lab.layout import ROOT, Layout
from tests.lab.fake_release import CUTLASS, GATE, PORT, READINESS, recipe
from tests.lab.lab_driver import Lab

NAME = "bench-noop"
SERVICE = "fakes"
# On DGX OS, as on every Ubuntu, Ansible's module for packages has them; lab hosts are smaller.
_DEBS = ("python3-apt", "python-apt-common", "distro-info-data")
# What both tools keep, and nothing is restarted for.
CHANGED_FILE = "/etc/tinderbox/network.env"


class NotConvergedError(Exception):
    """A host changed, or failed, while it was measured: the figures would mean nothing."""


@dataclass(frozen=True)
class Ours:
    """A run of deploys/spark.py. `changed`: operations that changed something, of all hosts. `stages`: seconds."""

    cost: Cost
    round_trips: int
    changed: int
    stages: dict[str, float]


@dataclass(frozen=True)
class ConvergeLab:
    """It is up. `first`: what the first converge of one fresh host cost each tool."""

    layout: Layout
    hosts: tuple[str, ...]
    fleet: Path
    playbook: Playbook
    first: tuple[Ours, Cost]

    def ours(self) -> Ours:
        """Run deploys/spark.py on all hosts."""
        return _ours(self.fleet)

    def theirs(self) -> tuple[Cost, int]:
        """Run the playbook on all hosts; gives also how many tasks changed something."""
        played = self.playbook.play(self.hosts)
        return played.cost, played.changed

    def edit(self) -> None:
        """Change one managed file on every host, by hand."""
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            command = f"echo '# by hand' | sudo tee -a {CHANGED_FILE}"
            list(pool.map(lambda host: _ssh(self.layout, host, command), self.hosts))

    def cpu(self) -> float | None:
        """CPU seconds of all hosts so far."""
        used = [cpu_of(_docker("inspect", "--format", "{{.Id}}", self.layout.container(host))) for host in self.hosts]
        known = [one for one in used if one is not None]
        return sum(known) if len(known) == len(used) else None


@contextmanager
def converge_lab(count: int) -> Iterator[ConvergeLab]:
    """A lab of `count` hosts that both tools have converged; it is gone afterwards."""
    layout = Layout.named(NAME)
    _lab("down")
    forget_copies(layout)
    try:
        _lab("up", "--hosts", "2")
        source, other = layout.host(1), layout.host(2)
        fleet = _fleet(layout, source)
        ours = _ours(fleet)
        _settled(fleet)
        _install_debs(layout, (source, other))
        playbook = Playbook.prepare(layout, fleet, source)
        playbook.write_inventory(_fleet(layout, source, other))
        theirs = playbook.play((other,)).cost
        # Beside what Tinderbox has written, before it is copied: a run of it after the other changes nothing.
        playbook.play((source,))
        _docker("rm", "--force", layout.container(other))
        _docker("volume", "rm", "--force", layout.docker_volume(other))
        copy_host(layout, source, count)
        hosts = tuple(layout.host(number) for number in range(1, count + 1))
        fleet = _fleet(layout, *hosts)
        playbook.write_inventory(fleet)
        _settled(fleet)
        lab = ConvergeLab(layout, hosts, fleet, playbook, (ours, theirs))
        if lab.theirs()[1] and lab.theirs()[1]:
            raise NotConvergedError("the playbook changes hosts that it has just brought to its state")
        yield lab
    finally:
        _lab("down")
        forget_copies(layout)


def _ours(fleet: Path) -> Ours:
    with tempfile.TemporaryDirectory() as folder:
        counted, stages = Path(folder) / "counted", Path(folder) / "stages"
        told = {"ROUND_TRIPS": str(counted), "STAGE_SECONDS": str(stages)}
        told |= {"PYINFRA_PROGRESS": "off", "TINDERBOX_FLEET": str(fleet)}
        command = [sys.executable, "-m", "benchmarks.counted_pyinfra", "--yes", "inventory.py", "deploys/spark.py"]
        environment = os.environ | told
        # Whoever has it set would have every process compile all that it imports.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        cost, text = costing(command, environment)
        if not text.endswith("exit status 0"):
            raise NotConvergedError(f"{' '.join(command)}\n{text[-4000:]}")
        changed = sum(line.strip().endswith("Success") for line in text.split("--> Results")[0].splitlines())
        return Ours(cost, int(counted.read_text()), changed, json.loads(stages.read_text()))


def _settled(fleet: Path) -> None:
    """Have a run that changes nothing: a copied host passes on and restarts things first."""
    for _ in range(3):
        if not _ours(fleet).changed:
            return
    raise NotConvergedError("deploys/spark.py changes something at every run")


def _fleet(layout: Layout, *hosts: str) -> Path:
    """A fleet file of these hosts, which serve by the fake engine of tests/lab in a tiny image."""
    lab = Lab(layout)

    def change(content: dict[str, Any]) -> None:
        content["fleet"] = NAME
        content["hosts"] = {host: content["hosts"][host] for host in hosts}
        service = content["defaults"]["services"].pop("gpt-oss")
        service |= {"port": PORT, "gate": GATE, "image": {"recipe": recipe(lab)}, "readiness": READINESS}
        content["defaults"]["services"] = {SERVICE: service | {"environment": {"FAKE_SAYS": CUTLASS}}}

    return lab.write_fleet("converge", change)


def _install_debs(layout: Layout, hosts: tuple[str, ...]) -> None:
    folder = layout.folder / "debs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    subprocess.run(["apt-get", "download", "-qq", *_DEBS], cwd=folder, check=True, capture_output=True)
    packed = subprocess.run(["tar", "-c", "-C", str(folder), "."], check=True, capture_output=True).stdout
    for host in hosts:
        command = ["ssh", "-F", str(layout.ssh_config), host]
        install = "mkdir -p /tmp/debs && tar -x -C /tmp/debs && sudo dpkg -i /tmp/debs/*.deb && rm -r /tmp/debs"
        subprocess.run([*command, install], input=packed, check=True, capture_output=True)


def _ssh(layout: Layout, host: str, command: str) -> str:
    words = ["ssh", "-F", str(layout.ssh_config), host, command]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def _lab(action: str, *words: str) -> None:
    command = [sys.executable, "-m", "modules.lab", action, "--name", NAME, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotConvergedError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def _docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout.strip()
