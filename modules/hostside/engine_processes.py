"""Engines that run on this host, whoever started them: two that load at once take memory that only one was given.

    engine_processes.py PATTERNS SERVICES     two JSON lists in base64; prints JSON: `strangers`, in words

PATTERNS: the catalog's, of engines' processes, in base64 since this process would be one by its own words. SERVICES:
those of Tinderbox that belong here. What an older fleet file has left over is no stranger: it makes way for them.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.neighbours import left_over
    from modules.hostside.predecessor_note import service_to_come
    from modules.hostside.service_unit import run
else:
    from neighbours import left_over
    from predecessor_note import service_to_come
    from service_unit import run

PROC = Path("/proc")
_CONTAINER = re.compile(r"[0-9a-f]{64}")
# What only speaks of an engine: clients of container runtimes, shells, editors, pagers, and who is to end it first.
_SPEAKS_OF = re.compile(
    r"^(docker|podman|nerdctl|ctr|runc|sudo|su|ssh|sshd.*|(ba|da|z|fi)?sh|tmux.*|screen|env|timeout|nohup|e?grep|rg|"
    r"vim?|nano|emacs|less|more|tail|cat|watch|journalctl|systemctl|systemd.*|pgrep|pkill|ps|htop|man|earlyoom)$"
)


@dataclass(frozen=True)
class EngineProcess:
    """`match`: the words by which it was known. `service`: of Tinderbox; None: another's. `container`: its name.

    A server whose place a service is to take counts as that service's already.
    """

    pid: int
    match: str
    service: str | None = None
    container: str | None = None

    def text(self) -> str:
        """For people. Never its whole command line, which may hold a key."""
        where = f" in container {self.container}" if self.container else ""
        whose = f", service {self.service} of Tinderbox" if self.service else ""
        return f"{self.match} (pid {self.pid}{where}{whose})"


def engine_processes(patterns: Iterable[str], proc: Path = PROC) -> list[EngineProcess]:
    """Every process of an engine, by the `process` patterns of the catalog; one of each container."""
    known = [re.compile(pattern) for pattern in patterns]
    found: dict[str, EngineProcess] = {}
    for pid, words in _processes(proc):
        if not words or _SPEAKS_OF.match(words[0].rsplit("/", 1)[-1]):
            continue
        match = next((hit[0] for hit in (pattern.search(" ".join(words)) for pattern in known) if hit), None)
        if match is not None:
            identity = _container(proc / str(pid))
            service, container = _labels(identity)
            service = service or service_to_come(pid, identity, proc)
            found.setdefault(container or str(pid), EngineProcess(pid, match, service, container))
    return sorted(found.values(), key=lambda one: one.pid)


def _processes(proc: Path) -> Iterator[tuple[int, list[str]]]:
    """Each process with its words, the oldest first."""
    for pid in sorted(int(path.name) for path in proc.glob("[0-9]*")):
        try:
            text = (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it has just ended
            continue
        yield pid, text.rstrip("\0").split("\0") if text else []


def _container(process: Path) -> str | None:
    try:
        lines = (process / "cgroup").read_text().splitlines()
    except OSError:
        return None
    # The innermost: a host may itself be in a container, and have its own below it.
    found = next((ids for ids in map(_CONTAINER.findall, lines) if ids), None)
    return found[-1] if found else None


def _labels(container: str | None) -> tuple[str | None, str | None]:
    """Service of Tinderbox and name of a container, of those that docker knows: this host may itself be in one."""
    form = '{"name": {{json .Name}}, "service": {{json (index .Config.Labels "tinderbox.service")}}}'
    shown = run("docker", "container", "inspect", "--format", form, container) if container else None
    if not shown:
        return None, None
    told = json.loads(shown)
    return told["service"] or None, str(told["name"]).lstrip("/")


def main(patterns: str, services: str) -> None:
    """See above."""
    ours = {*_listed(services), *left_over()}
    found = [one.text() for one in engine_processes(_listed(patterns)) if one.service not in ours]
    print(json.dumps({"strangers": found}))


def _listed(text: str) -> list[str]:
    return [str(one) for one in json.loads(base64.b64decode(text))]


if __name__ == "__main__":
    main(*sys.argv[1:])
