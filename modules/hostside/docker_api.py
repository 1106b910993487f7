"""What docker's own client can not do, over the daemon's socket.

A container is made again from what docker told of it, and a program is started in one with its environment, none of
which then stands in a command line.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

SOCKET = "/var/run/docker.sock"
_TIMEOUT_S = 120


class DockerApiError(Exception):
    """The daemon refused, or does not answer; the text is its own."""


class _Connection(http.client.HTTPConnection):
    def connect(self) -> None:
        """To the daemon's socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(SOCKET)


def ask(method: str, path: str, body: Mapping[str, Any] | None = None, timeout_s: float = _TIMEOUT_S) -> Any:
    """What the daemon answers, read as JSON; None where it says nothing. Raises `DockerApiError`."""
    connection = _Connection("docker", timeout=timeout_s)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        said = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise DockerApiError(f"dockerd does not answer: {error}") from error
    finally:
        connection.close()
    if answer.status >= 400:
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(said)["message"]
        raise DockerApiError(str(said).strip())
    try:
        return json.loads(said) if said.strip() else None
    except ValueError:
        return None


def start(container: str) -> None:
    """Start a container; one that runs is left alone."""
    ask("POST", f"/containers/{container}/start")


def made_again(told: Mapping[str, Any]) -> str:
    """Make a container from what `docker inspect` told of a former one, by its name and image's id. Returns its id."""
    name = str(told["Name"]).lstrip("/")
    networks = (told.get("NetworkSettings") or {}).get("Networks") or {}
    kept = ("Aliases", "IPAMConfig", "Links", "DriverOpts")
    ends = {network: {key: end[key] for key in kept if end.get(key)} for network, end in networks.items()}
    mode = (told.get("HostConfig") or {}).get("NetworkMode") or "default"
    plain = mode in {"host", "none"} or mode.startswith("container:")
    body = {
        **told["Config"],
        "Image": told["Image"],
        "HostConfig": told["HostConfig"],
        "NetworkingConfig": {"EndpointsConfig": {} if plain else ends},
    }
    # Volumes without a name of their own went with the container; the others are in its HostConfig.
    return str(ask("POST", f"/containers/create?name={name}", body)["Id"])


def execution(pid: int, proc: Path = Path("/proc")) -> dict[str, Any]:
    """How a process that runs in a container was started."""
    folder = proc / str(pid)
    try:
        words = (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
        environment = (folder / "environ").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
        where = str((folder / "cwd").readlink())
    except OSError as error:
        raise DockerApiError(f"process {pid} has ended: describe the host anew ({error})") from error
    return {"Cmd": words, "Env": environment, "WorkingDir": where}


def execute(container: str, how: Mapping[str, Any]) -> None:
    """Start such a program in a container, and leave it there."""
    made = ask("POST", f"/containers/{container}/exec", {**how, "AttachStdout": False, "AttachStderr": False})
    ask("POST", f"/exec/{made['Id']}/start", {"Detach": True})
