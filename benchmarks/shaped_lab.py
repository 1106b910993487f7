"""A lab of its own for measurements on slow links: hosts with our programs, and a hub with models of random bytes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from modules.lab.layout import ROOT, Layout
from modules.lab.mirror.hub import HubIndex
from modules.lab.model.repository import commit_of, listing

NAME = "bench"
HOME = "/var/lib/tinderbox/bench"
_TOOLS = "/var/lib/tinderbox/tools"
_FILES = 4
# `randbytes` makes no more than 256 MiB less one byte in one go.
_AT_ONCE = 1 << 24


class FailedError(Exception):
    """A command did not do what it should: the figures would mean nothing."""


@dataclass(frozen=True)
class Model:
    """A model on the lab's hub."""

    name: str
    commit: str
    size: int


@dataclass(frozen=True)
class ShapedLab:
    """A lab that is up."""

    layout: Layout
    hosts: tuple[str, ...]

    def shape(self, mbit: float | None) -> None:
        """Give all hosts and the mirror such links."""
        limit = [] if mbit is None else ["--mbit", f"{mbit:g}"]
        for host in ("mirror", *self.hosts):
            _run([sys.executable, "-m", "modules.lab", "shape", "--name", NAME, host, *limit])

    def ssh(self, host: str, command: str) -> str:
        """A shell command on a host."""
        return _run(["ssh", "-F", str(self.layout.ssh_config), host, command])

    def everywhere(self, command: str, hosts: Sequence[str] | None = None) -> None:
        """A shell command on all hosts at once."""
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            list(pool.map(lambda host: self.ssh(host, command), self.hosts if hosts is None else hosts))

    def model(self, name: str, size: int) -> Model:
        """Put a model of random bytes on the hub."""
        folder = self.layout.mirror_state / "hub" / "tinderbox-lab" / name
        work = folder / "work"
        work.mkdir(parents=True)
        chance = random.Random(name)  # noqa: S311 - what matters is that it can not be compressed
        for number in range(_FILES):
            with (work / f"model-{number + 1}-of-{_FILES}.bin").open("wb") as file:
                left = size // _FILES
                while left:
                    left -= file.write(chance.randbytes(min(left, _AT_ONCE)))
        files = listing(work)
        commit = commit_of(files)
        work.rename(folder / commit)
        index: HubIndex = {"refs": {"main": commit}, "commits": {commit: files}}
        (folder / "hub.json").write_text(json.dumps(index))
        return Model(f"tinderbox-lab/{name}", commit, size)

    def weights(self, model: Model, home: str, hosts: Sequence[str], **spread: object) -> float:
        """Run the weights stage on these hosts; the seconds that it took, from start to end of the command."""
        content = yaml.safe_load(self.layout.fleet.read_text())
        content["hosts"] = {host: content["hosts"][host] for host in hosts}
        content["defaults"]["weights"] = {"home": f"{HOME}/{home}", "spread": spread}
        content["defaults"]["services"]["gpt-oss"]["model"] = {
            "repository": model.name, "revision": model.commit, "size_gib": model.size / 1024**3,
            "served_as": "bench", "source": "made for this measurement",
        }  # fmt: skip
        fleet = self.layout.folder / f"{home}.yaml"
        fleet.write_text(yaml.safe_dump(content, sort_keys=False))
        started = time.perf_counter()
        program = str(Path(sys.executable).with_name("pyinfra"))
        environment = {"TINDERBOX_FLEET": str(fleet), "PYINFRA_PROGRESS": "off"}
        _run([program, "inventory.py", "deploys/weights.py", "-y"], environment)
        return time.perf_counter() - started

    def folder(self, model: Model, home: str) -> str:
        """Where a host has the model's contents."""
        return f"{HOME}/{home}/hub/models--{model.name.replace('/', '--')}/blobs/"


@contextmanager
def shaped_lab(count: int) -> Iterator[ShapedLab]:
    """A lab of `count` hosts, each with our programs and tools; it is gone afterwards."""
    layout = Layout.named(NAME)
    _run([sys.executable, "-m", "modules.lab", "down", "--name", NAME])
    try:
        _run([sys.executable, "-m", "modules.lab", "up", "--name", NAME, "--hosts", str(count)])
        lab = ShapedLab(layout, tuple(layout.host(number) for number in range(1, count + 1)))
        _equip(lab)
        yield lab
    finally:
        _run([sys.executable, "-m", "modules.lab", "down", "--name", NAME])


def _equip(lab: ShapedLab) -> None:
    """Install tools on the first host, copy them to the others, and programs on all: what is measured comes after."""
    first, *others = lab.hosts
    model = lab.model("equip", 4096)
    lab.weights(model, "equip", [first])
    for host in others:
        way = ["ssh", "-F", str(lab.layout.ssh_config)]
        with subprocess.Popen([*way, first, f"sudo tar -c {_TOOLS}"], stdout=subprocess.PIPE) as packing:
            subprocess.run([*way, host, "sudo tar -x -C /"], stdin=packing.stdout, check=True, capture_output=True)
        if packing.returncode != 0:
            raise FailedError(f"{first}: {_TOOLS} could not be packed")
    lab.weights(model, "equip", lab.hosts)


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise FailedError(f"{' '.join(command)}: exit {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout
