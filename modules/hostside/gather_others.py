"""What else is on this machine beside Tinderbox's services: sent to a host together with gather.py, which calls it.

Names and numbers of processes, never their command lines, which may hold a key. Runs on every Python from 3.7 on.
"""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_OURS = "tinderbox-"
_LISTENS = "0A"  # include/net/tcp_states.h
_CONTAINER = re.compile(r"[0-9a-f]{64}")
# What only speaks of an engine: clients of container runtimes, shells, editors, pagers.
_SPEAKS_OF = re.compile(
    r"^(docker|podman|nerdctl|ctr|runc|sudo|su|ssh|sshd.*|(ba|da|z|fi)?sh|tmux.*|screen|env|timeout|nohup|e?grep|rg|"
    r"vim?|nano|emacs|less|more|tail|cat|watch|journalctl|systemctl|systemd.*|pgrep|pkill|ps|htop|man)$"
)
_LARGEST = 3
_MOST_FILES = 5000


def read(path: str | Path) -> str:
    """The text of a file, empty where none can be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class Processes:
    """Who runs here. `running`: id of a running container → its name, image and published ports."""

    def __init__(self, docker_root: str) -> None:
        self.running: dict[str, dict[str, Any]] = {}
        try:
            ids = os.listdir(f"{docker_root}/containers")  # noqa: PTH208, without root it may be read by nobody
        except OSError:
            ids = []
        for id_ in ids:
            try:
                config = json.loads(read(f"{docker_root}/containers/{id_}/config.v2.json"))
                if config["State"]["Running"]:
                    published = (config.get("NetworkSettings") or {}).get("Ports") or {}
                    self.running[config["ID"]] = {
                        "name": str(config["Name"]).lstrip("/"),
                        "image": str(config["Config"]["Image"]),
                        "ports": [int(to["HostPort"]) for each in published.values() for to in each or () if to],
                    }
            except (OSError, ValueError, KeyError, TypeError):
                continue
        self.all = {int(path.name): read(path / "cgroup") for path in Path("/proc").glob("[0-9]*")}

    def told(self, pid: int) -> dict[str, Any]:
        """A process by its name, with the container or the unit of the system that it runs in."""
        group = self.all.get(pid, "")
        ids = [self.running[found] for found in _CONTAINER.findall(group) if found in self.running]
        unit = re.search(r"/system\.slice/(?:.*/)?([^/\n]+\.service)", group)
        status = dict(line.partition(":")[::2] for line in read(f"/proc/{pid}/status").splitlines())
        return {
            "pid": pid,
            "name": status.get("Name", "").strip(),
            "memory": int((status.get("VmRSS") or "0").split()[0]) * 1024,
            "container": ids[-1]["name"] if ids else None,
            "image": ids[-1]["image"] if ids else None,
            "unit": unit[1] if unit and not ids else None,
        }

    def is_ours(self, pid: int) -> bool:
        """Whether it is a part of a service or job of Tinderbox."""
        group = self.all.get(pid, "")
        names = (self.running[found]["name"] for found in _CONTAINER.findall(group) if found in self.running)
        # A user gives units of their own whatever name they like.
        of_the_system = f"/{_OURS}" in group and "/user.slice/" not in group
        return of_the_system or any(name.startswith(_OURS) for name in names)

    def holder(self, address: str, port: int) -> dict[str, Any] | None:
        """What listens there and is not ours; None where nothing does."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((address, port))
            except OSError as error:
                if error.errno != 98:  # EADDRINUSE; an address that is not here is told by the engine
                    return None
            else:
                return None
        for container in self.running.values():
            if port in container["ports"]:
                told = {"pid": 0, "name": "", "memory": 0, "container": container["name"], "unit": None}
                return None if container["name"].startswith(_OURS) else {**told, "image": container["image"]}
        found = self._listeners(port)
        foreign = [pid for pid in found if not self.is_ours(pid)]
        unknown = {"pid": 0, "name": "", "memory": 0, "container": None, "image": None, "unit": None}
        return self.told(foreign[0]) if foreign else None if found else unknown

    def _listeners(self, port: int) -> list[int]:
        lines = [line.split() for name in ("tcp", "tcp6") for line in read(f"/proc/net/{name}").splitlines()[1:]]
        open_here = [words for words in lines if words[3] == _LISTENS and int(words[1].rpartition(":")[2], 16) == port]
        sockets = {f"socket:[{words[9]}]" for words in open_here}
        found: list[int] = []
        # As a rule it is ours, and then nobody else's files need be looked through.
        for pid in sorted(self.all, key=lambda pid: not self.is_ours(pid)):
            if found and not self.is_ours(pid):
                break
            try:
                links = (os.readlink(str(file)) for file in Path(f"/proc/{pid}/fd").iterdir())  # noqa: PTH115, 3.7
                if any(link in sockets for link in links):
                    found.append(pid)
            except OSError:  # it has just ended
                continue
        return found

    def engines(self, packed: str) -> list[dict[str, Any]]:
        """Engines that are not ours, one process of each. `packed`: patterns in base64, or this would be one."""
        patterns = [re.compile(each) for each in json.loads(base64.b64decode(packed))]
        found: dict[str, dict[str, Any]] = {}
        for pid in sorted(self.all):
            words = read(f"/proc/{pid}/cmdline").rstrip("\0").split("\0")
            if not words[0] or pid == os.getpid() or self.is_ours(pid) or _SPEAKS_OF.match(words[0].rsplit("/", 1)[-1]):
                continue
            hits = [hit[0] for hit in (pattern.search(" ".join(words)) for pattern in patterns) if hit]
            # Of one that is not in a container, its first process stands for all.
            if hits and not self._descends(pid, {one["pid"] for one in found.values()}):
                told = self.told(pid)
                found.setdefault(told["container"] or str(pid), {**told, "engine": hits[0]})
        return list(found.values())

    def _descends(self, pid: int, ancestors: set[int]) -> bool:
        while pid > 1 and ancestors:
            status = re.search(r"^PPid:\s*(\d+)", read(f"/proc/{pid}/status"), re.MULTILINE)
            pid = int(status[1]) if status else 0
            if pid in ancestors:
                return True
        return False

    def largest(self) -> list[dict[str, Any]]:
        """The processes that hold most memory and are not ours."""
        sizes = {pid: int((read(f"/proc/{pid}/statm").split() or ["0", "0"])[1]) for pid in self.all}
        most = sorted((pid for pid in sizes if not self.is_ours(pid)), key=lambda pid: -sizes[pid])
        return [self.told(pid) for pid in most[:_LARGEST]]

    def in_unit(self, names: Iterable[str]) -> list[str]:
        """Those of these units in which something runs."""
        return [name for name in names if any(f"/{name}\n" in group for group in self.all.values())]


def not_of_its_owner(folder: str) -> dict[str, Any] | None:
    """A cache in somebody's home directory that holds what is not theirs: how much of it, and whose it should be."""
    home = re.match(r"^(/home/[^/]+)/", folder)
    if home is None or not Path(folder).is_dir():
        return None
    strange = strangers_files(folder, Path(home[1]).stat().st_uid)
    return {"path": folder, "home": home[1], "strange": strange} if strange else None


def strangers_files(folder: str, owner: int) -> int:
    """How many files and folders are not the owner's. A file that has another name lies elsewhere, too: it counts not.

    As cache_owner.py has it, which leaves such a file alone.
    """
    strange, seen = 0, 0
    for place, folders, files in os.walk(folder):
        for name in (".", *files):
            try:
                found = Path(place, name).lstat()
            except OSError:
                continue
            strange += found.st_uid != owner and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1)
        seen += 1 + len(files)
        if seen > _MOST_FILES:
            folders.clear()
    return strange
