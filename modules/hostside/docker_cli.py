"""Docker's command line, as this host has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# After a restart of the host, jobs start before docker is up.
_WAIT_S = 60
# Since this version the client has no builder of its own and needs the buildx plugin.
_BUILDX_SINCE = 23


class DockerError(Exception):
    """Docker can not do what is wanted; the text says what to do."""


def await_daemon(sleep: Callable[[float], None] = time.sleep) -> str:
    """The client's version, as soon as the daemon answers.

    Raises `DockerError` when it does not within a minute, or at once where nothing starts it.
    """
    if shutil.which("docker") is None:
        raise DockerError("docker is not installed: run deploys/runtime.py first")
    for _ in range(_WAIT_S):
        shown = capture("version", "--format", "{{json .}}")
        found = json.loads(shown.stdout) if shown.stdout.strip().startswith("{") else {}
        if found.get("Server"):
            return str(found["Client"]["Version"])
        if not _may_come():
            break
        sleep(1)
    raise DockerError(
        f"dockerd does not answer: {shown.stderr.strip()} Start it (systemctl start docker), or run "
        "deploys/runtime.py; look at: journalctl -u docker"
    )


def _may_come() -> bool:
    """Whether systemd runs docker's service or is about to; True where that can not be told."""
    try:
        asked = ["systemctl", "show", "--property=ActiveState,Job", "docker.service"]
        shown = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    except OSError:
        return True
    found = dict(line.partition("=")[::2] for line in shown.splitlines())
    # A job is what a unit has that the boot has not come to yet.
    return found.get("ActiveState") not in {"inactive", "failed"} or found.get("Job", "0") not in {"", "0"}


def require_builder(version: str) -> None:
    """Refuse a client that can not build with BuildKit."""
    major = version.split(".", 1)[0]
    if int(major) >= _BUILDX_SINCE and capture("buildx", "version").returncode != 0:
        raise DockerError(
            f"docker {version} builds only with its buildx plugin: "
            "apt-get install docker-buildx-plugin (Docker's packages) or docker-buildx (Ubuntu's)"
        )


def capture(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `docker …` and keep what it says."""
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=False)


def capture_all(*commands: Sequence[str]) -> list[str]:
    """Run several `docker …` side by side; gives what each said, which is nothing of much use where it failed."""
    running = [
        subprocess.Popen(
            ["docker", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
        )
        for words in commands
    ]
    return [process.communicate()[0] for process in running]


def inspect(reference: str) -> dict[str, Any] | None:
    """An image as docker describes it, or None."""
    shown = capture("image", "inspect", reference)
    return json.loads(shown.stdout)[0] if shown.returncode == 0 else None


@contextmanager
def lines(*words: str, environment: dict[str, str] | None = None) -> Iterator[Iterator[str]]:
    """Run `docker …`; gives its lines as they come and passes them on to the log.

    Raises `DockerError` after it when docker failed.
    """
    command = ["docker", *words]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | (environment or {}),
    ) as process:
        yield map(_passed_on, process.stdout or ())
    if process.returncode != 0:
        raise DockerError(f"docker {words[0]} failed with exit status {process.returncode}")


def _passed_on(line: str) -> str:
    sys.stdout.write(line)
    sys.stdout.flush()
    return line
