"""Whose a process is: which container and which unit of Tinderbox it runs in, and what listens at a port."""

from __future__ import annotations

import os
import re

PROC = "/proc"
_CONTAINER = re.compile(r"[0-9a-f]{64}")
_UNIT = re.compile(r"tinderbox-[\w@.-]+\.service")
_LISTENS = "0A"  # include/net/tcp_states.h


def read(path: str) -> str:
    """The text of a file; empty where it can not be read, as of a process that has just ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def processes(proc: str = PROC) -> dict[int, tuple[str | None, str | None]]:
    """Process → its innermost container's id, and its unit of Tinderbox, as its control groups name them."""
    found = {}
    for name in os.listdir(proc):  # noqa: PTH208
        if name.isdigit():
            text = read(f"{proc}/{name}/cgroup")
            containers = next((ids for ids in map(_CONTAINER.findall, text.splitlines()) if ids), [None])
            unit = _UNIT.search(text)
            found[int(name)] = (containers[-1], unit[0] if unit else None)
    return found


def name_of(pid: int, proc: str = PROC) -> str | None:
    """As the kernel has it; None where it is gone."""
    return read(f"{proc}/{pid}/comm").strip() or None


def own_memory(pid: int, proc: str = PROC) -> int:
    """Bytes that are its alone."""
    found = re.search(r"^RssAnon:\s+(\d+) kB", read(f"{proc}/{pid}/status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def listening(ports: set[int], proc: str = PROC) -> dict[int, set[str]]:
    """Port → the sockets that listen there, at whatever address."""
    found: dict[int, set[str]] = {port: set() for port in ports}
    for table in ("tcp", "tcp6"):
        for line in read(f"{proc}/net/{table}").splitlines()[1:]:
            words = line.split()
            port = int(words[1].rpartition(":")[2], 16)
            if words[3] == _LISTENS and port in found:
                found[port].add(f"socket:[{words[9]}]")
    return found


def holders(sockets: dict[int, set[str]], pids: list[int], proc: str = PROC) -> dict[int, list[int]]:
    """Port → the processes that hold its sockets; `pids`: the likely ones first, since the rest is left unread then."""
    whose = {socket: port for port, ones in sockets.items() for socket in ones}
    found: dict[int, list[int]] = {port: [] for port in sockets}
    for pid in pids:
        if all(found[port] or not ones for port, ones in sockets.items()):
            break
        for port in {whose[link] for link in _links(f"{proc}/{pid}/fd") if link in whose}:
            found[port].append(pid)
    return found


def _links(folder: str) -> list[str]:
    try:
        return [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]  # noqa: PTH115, PTH208
    except OSError:
        return []
