"""The docker daemon of this machine; started by the lab where there is none, and then also stopped by it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import docker
from docker.errors import DockerException

from modules.lab.errors import LabError
from modules.lab.machine import can_install, need, run
from modules.lab.pieces.piece import cache_directory, locked

# Held, shared, by each lab that is coming up: see `modules.lab.pieces.piece.in_use`.
IN_USE = "daemon-in-use"

_START_SECONDS, _STOP_SECONDS = 60.0, 30.0
_TIMEOUT_SECONDS = 300


def connect() -> docker.DockerClient | None:
    """A client of the daemon, or None when none answers."""
    try:
        client = docker.from_env(timeout=_TIMEOUT_SECONDS)
        client.ping()
    except DockerException:
        return None
    return client


def require() -> docker.DockerClient:
    """A client of the daemon, which is installed and started where need be.

    Raises:
        LabError: there is none, and we may not install or start one.

    """
    client = connect()
    if client is not None:
        return client
    if not can_install():
        raise LabError(
            "no docker daemon answers. As root on Debian or Ubuntu the lab installs and starts one; "
            "otherwise start it, set DOCKER_HOST, or let this user into the group `docker`"
        )
    need({"dockerd": "docker.io", "iptables": "iptables"})
    with locked("dockerd"):
        client = connect()  # a package's own scripts, or another lab, may have started it
        if client is None:
            _start()
            client = connect()
    if client is None:
        raise LabError(f"dockerd was started but does not answer: see {_log()}")
    return client


def started_by_us() -> bool:
    """Whether the lab had to start the daemon, and has not stopped it yet."""
    return _pid_file().exists()


def stop_if_ours(client: docker.DockerClient) -> bool:
    """Stop the daemon when the lab started it and no container is left on it. True when it was stopped."""
    if not started_by_us() or client.containers.list(all=True):
        return False
    pid = int(_pid_file().read_text())
    if _is_dockerd(pid):
        os.kill(pid, 15)
        _wait(lambda: not _is_dockerd(pid), _STOP_SECONDS)
    _pid_file().unlink()
    return True


def _start() -> None:
    if Path("/run/systemd/system").is_dir():
        # It belongs to systemd then, and stays as any installed service does.
        run(["systemctl", "start", "docker"])
        return
    cache_directory().mkdir(parents=True, exist_ok=True)
    with _log().open("ab") as log:
        process = subprocess.Popen(
            ["dockerd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    _pid_file().write_text(str(process.pid))
    if (
        not _wait(lambda: connect() is not None or process.poll() is not None, _START_SECONDS)
        or process.poll() is not None
    ):
        _pid_file().unlink()
        last = "\n".join(f"    {line}" for line in _log().read_text(errors="replace").splitlines()[-10:])
        raise LabError(f"dockerd does not start; the end of {_log()}:\n{last}")


def _wait(done: object, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if callable(done) and done():
            return True
        time.sleep(0.3)
    return False


def _is_dockerd(pid: int) -> bool:
    try:
        return "dockerd" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def _pid_file() -> Path:
    return cache_directory() / "dockerd.pid"


def _log() -> Path:
    return cache_directory() / "dockerd.log"
