"""Waiting for a lab's containers to be what they stand for."""

from __future__ import annotations

import time
from collections.abc import Callable

from docker.models.containers import Container

from modules.lab.errors import LabError

_HOST_SECONDS, _MIRROR_SECONDS, _KEYS_SECONDS = 90.0, 30.0, 10.0
_LAST_LINES = 15
# "starting" lasts until an engine that starts with its host has made its first token: minutes. It is not waited for.
_HOST_PROBE = (
    "systemctl is-system-running; systemctl is-active systemd-user-sessions ssh docker; "
    "systemctl list-units --state activating --no-legend --plain 'tinderbox-*.service'"
)
_MIRROR_PROBE = (
    "import ssl, urllib.request as u; c = ssl._create_unverified_context(); "
    "[u.urlopen(u.Request(f'https://127.0.0.1{port}', headers={'Host': host}), context=c) "
    "for port, host in (('/simple/', 'pypi.lab'), (':5000/v2/', 'registry.lab:5000'))]"
)


def await_host(container: Container) -> None:
    """Wait until systemd has settled and sshd and dockerd are active.

    Raises:
        LabError: not within a minute and a half, with what is failing.

    """

    def settled() -> bool:
        return is_settled(_output(container, ["sh", "-c", _HOST_PROBE]).splitlines())

    if not _wait(container, settled, _HOST_SECONDS):
        failing = _output(container, ["systemctl", "list-units", "--failed", "--no-legend", "--plain"])
        raise LabError(
            f"{container.name} does not come up; failing: {failing.strip() or 'nothing yet'}\n{_end_of_log(container)}"
        )


def is_settled(lines: list[str]) -> bool:
    """Whether what the probe printed is a host that has booted, but for engines that are still starting."""
    system, *rest = lines or ["unknown"]
    booted = system in {"running", "degraded"} or (system == "starting" and len(rest) > 3)
    return booted and rest[:3] == ["active"] * 3


def await_mirror(container: Container) -> None:
    """Wait until the mirror answers by TLS.

    Raises:
        LabError: not within half a minute, with the end of its log.

    """
    if not _wait(container, lambda: container.exec_run(["python3", "-c", _MIRROR_PROBE])[0] == 0, _MIRROR_SECONDS):
        raise LabError(f"{container.name} does not answer\n{_end_of_log(container)}")


def host_keys(container: Container) -> list[str]:
    """The host's public keys, as `type base64`.

    Raises:
        LabError: it does not tell them.

    """
    listed: list[str] = []

    def told() -> bool:
        listed[:] = _output(container, ["sh", "-c", "cat /etc/ssh/ssh_host_*_key.pub"]).splitlines()
        return bool(listed)

    # On a machine that is very busy docker now and then loses what a command in a container has said.
    if not _wait(container, told, _KEYS_SECONDS):
        raise LabError(f"{container.name} does not tell its ssh keys")
    return [" ".join(line.split()[:2]) for line in listed]


def _wait(container: Container, done: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        container.reload()
        if container.status != "running":
            return False
        if done():
            return True
        time.sleep(0.3)
    return False


def _output(container: Container, command: list[str]) -> str:
    output = container.exec_run(command, stderr=False)[1]
    return output.decode(errors="replace") if isinstance(output, bytes) else ""


def _end_of_log(container: Container) -> str:
    log = container.logs(tail=_LAST_LINES)
    text = log if isinstance(log, bytes) else b"".join(log)
    return "\n".join(f"    {line}" for line in text.decode(errors="replace").splitlines())
