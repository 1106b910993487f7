"""A lab host with less memory than the machine around it, and logins that go on while something happens there."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.lab_driver import Lab

_LOGIN_S = 30
_PAUSE_S = 0.5
# Of a host that is a container: its own control group, with all that runs on it below.
_GROUP = "sed -n 's/^[0-9]*:memory://p; s/^0:://p' /proc/1/cgroup | head -n 1 | sed 's,/init.scope$,,'"
_LIMIT = """
set -e
group=$1
if test -e /sys/fs/cgroup/memory; then
    cd "/sys/fs/cgroup/memory$group"; echo "$2" > memory.limit_in_bytes
else
    cd "/sys/fs/cgroup$group"; test "$2" != -1 || set -- "$1" max; echo "$2" > memory.max
fi
"""


def group_of(lab: Lab, host: str) -> str:
    """The control group of a host, as the machine's root names it."""
    return lab.ssh(host, _GROUP).stdout.strip()


_CONFIG = "/etc/docker/daemon.json"


@contextmanager
def containers_within(lab: Lab, host: str) -> Iterator[None]:
    """While this lasts, the host's containers count as its own: its dockerd puts them beside it otherwise."""

    def configure(parent: str | None) -> None:
        found = lab.ssh(host, f"sudo cat {_CONFIG}", check=False).stdout
        config = {**json.loads(found or "{}"), "cgroup-parent": parent}
        lab.write(host, _CONFIG, json.dumps({key: value for key, value in config.items() if value is not None}))
        lab.ssh(host, "sudo systemctl reset-failed docker; sudo systemctl restart docker")

    lab.ssh(host, "sudo mkdir -p /etc/docker")
    configure(f"{group_of(lab, host)}/engines")
    try:
        yield
    finally:
        configure(None)


@contextmanager
def limited(lab: Lab, host: str, limit: int) -> Iterator[None]:
    """While this lasts, the host has no more than `limit` bytes of memory."""
    group = group_of(lab, host)

    def write(value: int) -> None:
        lab.ssh(host, f"sudo sh -c '{_LIMIT}' limit {group} {value}")

    write(limit)
    try:
        yield
    finally:
        write(-1)


def oom_kills() -> int:
    """How many processes the kernel of this machine has killed for memory, in whatever control group."""
    rows = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return int(next(value for name, value in rows if name == "oom_kill"))


@dataclass
class Logins:
    """`failed`: what logins said that did not come about; `done`: how many did."""

    done: int = 0
    failed: list[str] = field(default_factory=list)


@contextmanager
def logins(lab: Lab, host: str) -> Iterator[Logins]:
    """While this lasts, somebody logs in again and again, each time by a connection of its own."""
    seen, stop = Logins(), threading.Event()
    argv = ["ssh", "-F", str(lab.layout.ssh_config), "-o", "ControlPath=none", "-o", "BatchMode=yes", host, "true"]

    def log_in() -> None:
        while not stop.wait(_PAUSE_S):
            try:
                done = subprocess.run(argv, capture_output=True, text=True, timeout=_LOGIN_S, check=False)
            except subprocess.TimeoutExpired:
                seen.failed.append(f"no login in {_LOGIN_S} s")
                continue
            if done.returncode == 0:
                seen.done += 1
            else:
                seen.failed.append(done.stderr)

    thread = threading.Thread(target=log_in)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
