"""What tests of the weights stage share: homes of their own, so that what other tests need of a host stays as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modules.lab.layout import ROOT
from modules.lab.model.repository import COMMIT, REPOSITORY, hub
from tests.lab.lab_driver import HEEDING_CTRL_C, Lab, Run

HOMES = "/var/lib/tinderbox/spread-tests"
PORT = 6889
# What may be fetched twice after any cut: docs/weights.md.
CHUNK = 32 * 1024 * 1024
DEPLOY = "deploys/weights.py"
_FOLDER = hub().path / REPOSITORY / COMMIT
SIZES = {path.name: path.stat().st_size for path in _FOLDER.iterdir() if path.is_file()}
TOTAL = sum(SIZES.values())
SHARD = max(SIZES, key=lambda name: SIZES[name])


@dataclass(frozen=True)
class Spread:
    """One home, on some hosts of the lab, that is filled by the weights stage."""

    lab: Lab
    name: str
    hosts: tuple[str, ...]

    @property
    def home(self) -> str:
        return f"{HOMES}/{self.name}"

    @property
    def blobs(self) -> str:
        return f"{self.home}/hub/models--{REPOSITORY.replace('/', '--')}/blobs"

    @property
    def snapshot(self) -> str:
        return f"{self.home}/hub/models--{REPOSITORY.replace('/', '--')}/snapshots/{COMMIT}"

    def fleet(self, *hosts: str, change: Callable[[dict[str, Any]], None] = lambda _: None, **spread: Any) -> Path:
        """A fleet file of these hosts (by default all) with this home and these settings of `weights.spread`."""

        def changed(content: dict[str, Any]) -> None:
            content["hosts"] = {name: content["hosts"][name] for name in hosts or self.hosts}
            content["defaults"]["weights"] = {"home": self.home, "spread": spread}
            change(content)

        return self.lab.write_fleet(f"spread-{self.name}-{'-'.join(hosts)}", changed)

    def run(self, *hosts: str, **spread: Any) -> Run:
        return self.lab.converge(DEPLOY, fleet=self.fleet(*hosts, **spread))

    @contextmanager
    def running(
        self, *hosts: str, change: Callable[[dict[str, Any]], None] = lambda _: None, **spread: Any
    ) -> Iterator[subprocess.Popen[str]]:
        """The run, in the background; killed at the end if it still runs."""
        argv = [*HEEDING_CTRL_C, sys.executable, "-m", "modules.converge", DEPLOY]

        environment = {**os.environ, **self.lab.environment(self.fleet(*hosts, change=change, **spread))}
        with subprocess.Popen(
            argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        ) as child:  # fmt: skip
            try:
                yield child
            finally:
                child.kill()

    def held(self, host: str) -> int:
        """Bytes on the disk, of whole files and parts."""
        command = f"sudo sh -c 'stat -c \"%s %b\" {self.blobs}/* 2>/dev/null' || true"
        lines = [line.split() for line in self.lab.ssh(host, command).stdout.splitlines()]
        return sum(min(int(size), int(blocks) * 512) for size, blocks in lines)

    def await_held(self, host: str, least: int, timeout_s: float = 120) -> int:
        """Wait until the host holds so many bytes."""
        ends = time.monotonic() + timeout_s
        while (held := self.held(host)) < least:
            assert time.monotonic() < ends, f"{host} holds {held} bytes after {timeout_s} s"
            time.sleep(0.3)
        return held

    def whole(self, host: str) -> None:
        """Every file of the snapshot is there and hashes to what the hub publishes; nothing else is left."""
        words = f"--repository {REPOSITORY} --revision {COMMIT} --home {self.home} --hash"
        said = self.lab.ssh(host, f"sudo python3 /usr/local/lib/tinderbox/verify_weights.py {words}", check=False)
        found = json.loads(said.stdout)
        assert (said.rc, found["problems"], found["files"], found["bytes"]) == (0, [], len(SIZES), TOTAL), said.text
        left = self.lab.ssh(host, f"sudo find {self.home} -name '*.incomplete' -o -name '.*swarm*'").stdout
        assert left == ""

    def taken(self, host: str) -> int:
        """How many bytes of files the host took from peers, in all takings that came to their end."""
        lines = self.lab.ssh(host, f"sudo sh -c \"grep -h '^from peers' {self.job(host, 'take')}/log*\"").stdout
        return sum(int(line.split()[-2]) for line in lines.splitlines())

    def job(self, host: str, name: str) -> str:
        """The directory of the newest job of that name."""
        return self.lab.ssh(host, f"sudo sh -c 'ls -dt /var/lib/tinderbox/jobs/{name}-*' | head -1").stdout.strip()

    def kill(self, host: str, program: str) -> None:
        """Kill -9 the process of a job, and no other."""
        self.lab.ssh(host, f"sudo pkill -9 -f '^[^ ]*python[^ ]* [^ ]*/{program}'")

    def fetched(self, since: int) -> list[tuple[str, str, int, str | None]]:
        """Host, file, bytes and range of every answer of the hub that held bytes of a file."""
        addresses = {self.lab.address(host): host for host in self.hosts}
        return [
            (addresses[each["client"]], each["path"].rsplit("/", 1)[1], each["bytes"], each["range"])
            for each in self.lab.requests(since)
            if each["method"] == "GET" and "/resolve/" in each["path"] and each["client"] in addresses
        ]

    def nobody_listens(self) -> None:
        for host in self.hosts:
            assert self.lab.ssh(host, f"sudo ss -ltn 'sport = :{PORT}' | tail -n +2").stdout == ""


@contextmanager
def spread_of(lab: Lab, name: str, *hosts: str) -> Iterator[Spread]:
    """A home that is gone afterwards."""
    spread = Spread(lab, name, hosts)
    try:
        yield spread
    finally:
        for host in hosts:
            jobs = "/var/lib/tinderbox/jobs/take-* /var/lib/tinderbox/jobs/share-* /var/lib/tinderbox/jobs/offer-*"
            stopping = "sudo systemctl stop 'tinderbox-job-take-*' 'tinderbox-job-share-*' 'tinderbox-job-weights-*'"
            lab.ssh(host, f"{stopping}; sudo sh -c 'rm -rf {HOMES} {jobs}'", check=False)
