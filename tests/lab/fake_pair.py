"""A fake engine whose ranks meet each other by TCP, as a real one's do, and a fleet file that has it over two hosts.

Rank 0 waits at the cluster's port for the others, and answers only while all of them do: when one is gone it hangs, and
so do they when it is. No part of it ends by itself for that, as none of vLLM's does.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.builds import HEAD, TAIL
from tests.lab.fake_release import _PROGRAM, CUTLASS, GATE, PORT, READINESS, SERVICE
from tests.lab.lab_driver import Lab
from tests.lab.tiny_recipe import tiny

HOSTS = ("spark-1", "spark-2")
HEAD_HOST, WORKER_HOST = HOSTS
_RANKS = '''

import os, socket, sys

_plain = handler


def say(*words):
    print("fake ranks:", *words, flush=True)


class Ranks:
    def __init__(self, words):
        told = lambda name: words[words.index(name) + 1]
        self.others, self.lock = [], threading.Lock()
        if "--nnodes" not in words:
            return
        meeting = (told("--master-addr"), int(told("--master-port")))
        if "--headless" in words and os.environ.get("FAKE_WORKER") == "exits":
            sys.exit("this worker is out of order, as it was told to be")
        if "--headless" in words:
            self.serve(meeting, told("--node-rank"))
        self.door = socket.create_server(meeting)
        say("rank 0 waits at", *meeting)
        while len(self.others) < int(told("--nnodes")) - 1:
            other, _ = self.door.accept()
            say("rank", other.recv(8).decode(), "has come")
            self.others.append(other)

    def serve(self, meeting, rank):
        while True:
            try:
                head = socket.create_connection(meeting, timeout=5)
                break
            except OSError:
                time.sleep(0.2)
        say("rank", rank, "has met rank 0")
        head.settimeout(None)
        head.sendall(rank.encode())
        try:
            while beat := head.recv(1):
                head.sendall(beat)
        except OSError:
            pass
        say("rank 0 is gone, and nobody tells this one")
        while True:
            time.sleep(3600)

    def together(self):
        """One step of all ranks."""
        with self.lock:
            for other in self.others:
                try:
                    other.sendall(b".")
                    there = other.recv(1)
                except OSError:
                    there = b""
                if not there:
                    say("a rank is gone, and nobody tells this one")
                    while True:
                        time.sleep(3600)


def handler(behaviour):
    ranks = Ranks(sys.argv[1:])

    class Handler(_plain(behaviour)):
        def do_POST(self):
            ranks.together()
            super().do_POST()

    return Handler
'''


def recipe(lab: Lab) -> dict[str, Any]:
    """The image's recipe, as a fleet file writes it out."""
    text = f"#!/usr/bin/env python3\n{Path('tests/lab/fake_engine.py').read_text()}{_RANKS}{_PROGRAM}"
    packed = base64.b64encode(text.encode()).decode()
    steps = f"RUN echo {packed} | base64 -d > /usr/local/bin/vllm && chmod 755 /usr/local/bin/vllm\n"
    check = 'LABEL tinderbox.check=\'["vllm", "--version"]\'\n'
    return tiny(lab, HEAD + steps + check + TAIL, name="fake-ranks", packages={}, pins={}, arguments={})


def pair_fleet(lab: Lab, name: str, keys: Mapping[str, Any] | None = None, /, **environment: str) -> Path:
    """A fleet file whose only service is one fake engine over two hosts. `keys`: of the service, that differ."""

    def change(content: dict[str, Any]) -> None:
        content["fleet"] = "pairs"
        content["hosts"] = {host: content["hosts"][host] for host in HOSTS}
        service = content["defaults"]["services"]["gpt-oss"]
        service |= {"port": PORT, "gate": GATE, "image": {"recipe": recipe(lab)}, "readiness": READINESS}
        service["cluster"] = {"hosts": list(HOSTS), "addresses": {host: lab.address(host) for host in HOSTS}}
        service["watchdog"] = {"every_s": 5, "checks": 2}
        service |= {"environment": {"FAKE_SAYS": CUTLASS, **environment}, **(keys or {})}
        content["defaults"]["services"] = {SERVICE: service}

    return lab.write_fleet(f"pairs-{name}", change)


@dataclass(frozen=True)
class Side:
    """One host's half: what its systemd and its ledger say."""

    active: str
    enabled: str
    current: str
    last_good: str
    events: str


@dataclass(frozen=True)
class Pair:
    """The service over both hosts."""

    lab: Lab
    service: str = SERVICE

    def side(self, host: str) -> Side:
        """One of them, in one look."""
        unit, ledger = f"tinderbox-{self.service}.service", f"/var/lib/tinderbox/ledger/{self.service}"
        look = (
            f"systemctl is-active {unit}; systemctl is-enabled {unit} 2>/dev/null || true; "
            f"sudo readlink {ledger}/current || echo none; sudo readlink {ledger}/last-good || echo none; "
            f"sudo sh -c 'for f in {ledger}/*.json; do test -L $f || case $f in *attestation*) ;; *) "
            f'python3 -c "import json,sys; e=json.load(open(sys.argv[1])); print(e[\\"id\\"], e[\\"events\\"])" $f;; '
            "esac; done'"
        )
        lines = self.lab.ssh(host, look, check=False).stdout.splitlines()
        return Side(lines[0], lines[1], lines[2], lines[3], "\n".join(sorted(lines[4:])))

    def sides(self) -> tuple[Side, Side]:
        """Head and worker."""
        return self.side(HEAD_HOST), self.side(WORKER_HOST)

    def agreed(self, active: str, within_s: float = 90) -> Side:
        """Until both sides are alike, and so; fails the test when they are not in time."""
        deadline = time.monotonic() + within_s
        while True:
            head, worker = self.sides()
            if head == worker and head.active == active:
                return head
            assert time.monotonic() < deadline, f"not both {active}:\n{head}\n{worker}\n{self.journals()}"
            time.sleep(1)

    def invocation(self, host: str) -> str:
        """Another one for each start of that side's unit."""
        return self.lab.ssh(host, f"systemctl show -P InvocationID tinderbox-{self.service}").stdout.strip()

    def journals(self) -> str:
        """What both sides' programs have logged."""
        units = f"-u tinderbox-pair@{self.service} -u tinderbox-{self.service}"
        return "\n".join(
            f"== {host}\n"
            + self.lab.ssh(host, f"sudo journalctl --no-pager -n 50 -o short {units}", check=False).stdout
            for host in HOSTS
        )
