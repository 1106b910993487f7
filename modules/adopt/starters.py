"""Which units of a host's owner start a container. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

Document = Mapping[str, Any]
# Labels of what compose makes begin so, by every version of it.
COMPOSE = "com.docker.compose"


def starts(unit: Document, docker: Document) -> bool:
    """Whether a unit of the host's owner starts a container: it names it, its compose project, or its very command."""
    line = unit.get("ExecStart") or ""
    words = _argv(line)
    if not any(PurePosixPath(word).name in {"docker", "docker-compose", "podman"} for word in words):
        return False
    name, labels = docker["Name"].lstrip("/"), docker["Config"]["Labels"]
    if any(word in {name, f"--name={name}"} for word in words):
        return True
    if folder := labels.get(f"{COMPOSE}.project.working_dir"):
        # The older compose writes them as they were given, by which a file of any project can be meant.
        files = (labels.get(f"{COMPOSE}.project.config_files") or "").split(",")
        own = {folder, *(str(PurePosixPath(folder, file)) for file in files if file)}
        composed = any("compose" in word for word in words)
        return composed and (unit.get("WorkingDirectory") == folder or bool(own & set(words)))
    given = list(docker["Args"])
    unnamed = not any(word == "--name" or word.startswith("--name=") for word in words)
    return (
        unnamed and "run" in words and docker["Config"]["Image"] in words and words[len(words) - len(given) :] == given
    )


def _argv(line: str) -> list[str]:
    """The words of `ExecStart=` as `systemctl show` prints it: `{ path=… ; argv[]=… ; ignore_errors=… }`."""
    found: list[str] = []
    for part in re.findall(r"argv\[\]=(.*?) ; ignore_errors=", line) or [line]:
        try:
            found += shlex.split(part)
        except ValueError:
            found += part.split()
    return found
