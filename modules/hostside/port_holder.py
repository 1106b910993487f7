"""Which program listens where a service wants to: found by trying, and named by what the kernel tells of its sockets.

port_holder.py SERVICE ADDRESS PORT     prints JSON: `holder`, in words; null where nothing does but the service
"""

from __future__ import annotations

import errno
import ipaddress
import json
import re
import socket
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.neighbours import left_over
    from modules.hostside.predecessor_note import chosen
    from modules.hostside.service_unit import run
else:
    from neighbours import left_over
    from predecessor_note import chosen
    from service_unit import run

_PROC = Path("/proc")
_LISTENS = "0A"  # include/net/tcp_states.h
_CONTAINER = re.compile(r"[0-9a-f]{64}")
UNKNOWN = "another program"


def is_taken(address: str, port: int) -> bool:
    """Whether somebody listens there. An address that the host has not is another fault, told by the engine."""
    version = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    with socket.socket(version, socket.SOCK_STREAM) as trial:
        # As servers do: a connection of before that has yet to time out is no listener.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def listeners(port: int, proc: Path = _PROC) -> list[int]:
    """The processes that listen at the port, at whatever address."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port, proc)}
    found = []
    for folder in proc.glob("[0-9]*/fd"):
        try:
            if any(str(link.readlink()) in sockets for link in folder.iterdir()):
                found.append(int(folder.parent.name))
        except OSError:  # it has just ended
            continue
    return sorted(found)


def _inodes(port: int, proc: Path) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        table = proc / "net" / name
        for line in table.read_text().splitlines()[1:] if table.exists() else []:
            words = line.split()
            if words[3] == _LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                yield words[9]


def _status(pid: int, proc: Path) -> dict[str, str]:
    try:
        lines = (proc / str(pid) / "status").read_text().splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def descends(pid: int, ancestor: int, proc: Path = _PROC) -> bool:
    """Whether a process is another one, or was started by it in however many steps."""
    while pid > 0:
        if pid == ancestor:
            return True
        pid = int(_status(pid, proc).get("PPid") or 0)
    return False


def described(pid: int, proc: Path = _PROC) -> str:
    """A process by name and number, with its container where it is in one."""
    name = _status(pid, proc).get("Name") or UNKNOWN
    try:
        found = _CONTAINER.search((proc / str(pid) / "cgroup").read_text())
    except OSError:
        found = None
    container = run("docker", "container", "inspect", "--format", "{{.Name}}", found[0]) if found is not None else None
    where = f", in container {container.strip().lstrip('/')}" if container else ""
    return f"{name} (pid {pid}{where})"


def foreign_holder(address: str, port: int, own: Collection[int]) -> str | None:
    """What listens there, in words; None where nothing does, or only what `own` (processes) have started."""
    if not is_taken(address, port):
        return None
    found = listeners(port)
    foreign = [pid for pid in found if not any(descends(pid, ancestor) for ancestor in own)]
    if found and not foreign:
        return None
    return ", ".join(described(pid) for pid in foreign) or UNKNOWN


def main(service: str, address: str, port: str) -> None:
    """See above. What an older fleet file has left over makes way for the service, and is none that is in its way."""
    if any(name == service and record["port"] == int(port) for name, record in chosen()):
        # A server whose place the service takes: it is stopped for that.
        print(json.dumps({"holder": None}))
        return
    own = []
    for name in (service, *left_over()):
        pid = run("docker", "container", "inspect", "--format", "{{.State.Pid}}", f"tinderbox-{name}")
        own += [int(pid)] if pid and int(pid) else []
    print(json.dumps({"holder": foreign_holder(address, int(port), own)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
