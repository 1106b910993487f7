"""Judgement of docker, and of who may use it."""

from __future__ import annotations

from collections.abc import Iterator

from modules.facts.machine_state import MachineState
from roles.preflight.finding import Finding, found, shell

_SETTINGS = "/etc/docker/daemon.json"


def judge_docker(state: MachineState) -> Iterator[Finding]:
    """Where docker is installed: whether it can run and does, and whether the user needs sudo for it."""
    if not state.docker_installed or not state.root:
        return
    if state.docker_masked:
        yield _told(
            "docker-masked",
            "docker.service is masked, so nothing can start it",
            "sudo systemctl unmask docker.service docker.socket",
        )
    elif state.docker_settings:
        yield _told(
            "docker-settings",
            f"{_SETTINGS} can not be read ({state.docker_settings})",
            f"sudo mv {_SETTINGS} {_SETTINGS}.broken",
            "; what was wanted of it belongs into the new one",
        )
    elif not state.docker_answers:
        yield _told("docker-silent", "dockerd does not answer", "sudo systemctl restart docker")
    if state.docker_group is False:
        yield _told(
            "docker-group",
            f"user {state.user} is not in group docker",
            f"sudo usermod -aG docker {state.user}",
            "; it holds from the next login on, and gives as much as root has",
        )


def _told(id_: str, measured: str, command: str, more: str = "") -> Finding:
    return found(id_, "docker", measured, remedy=f"{shell([command])}{more}", commands=(command,))
