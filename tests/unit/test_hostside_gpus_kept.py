"""What is done about an engine that has lost its GPU when systemd read its units anew."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

# As the programs import it on a host, so that what is patched is what they use.
from modules.hostside import gpus_kept as program
from modules.hostside.gpus_kept import gpus_kept

GPUS = '[{"Driver":"","Count":-1,"Capabilities":[["gpu"]]}]'


class Docker:
    """`engines`: service → what its container was given, and whether nvidia-smi finds a GPU in it."""

    def __init__(self, **engines: tuple[str, bool]) -> None:
        self.engines = engines
        self.asked: list[str] = []

    def run(self, *words: str) -> str | None:
        if words[:2] == ("docker", "ps"):
            return "".join(f"{service}\n" for service in self.engines) or None
        if words[:2] == ("docker", "inspect"):
            return "".join(f"{service} {self.engines[service][0]}\n" for service in words[4:])
        service = words[2].removeprefix("tinderbox-")
        assert (words[1], words[3:]) == ("exec", ("nvidia-smi", "-L"))
        self.asked.append(service)
        return "GPU 0: NVIDIA GB10 (UUID: GPU-1)\n" if self.engines[service][1] else None

    def lose(self, service: str) -> None:
        self.engines[service] = (self.engines[service][0], False)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    seen: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: seen.append(command))
    return seen


@pytest.fixture
def docker_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Docker]:
    def make(**engines: tuple[str, bool]) -> Docker:
        docker = Docker(**engines)
        monkeypatch.setattr(program, "run", docker.run)
        return docker

    return make


def test_a_lost_gpu_is_told_and_its_service_restarted(
    docker_of: Callable[..., Docker], commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    docker, told = docker_of(one=(GPUS, True), two=(GPUS, True)), list[str]()
    with gpus_kept(told.append):
        docker.lose("two")
    assert told == ["two"]
    assert commands == [["systemctl", "restart", "--no-block", "tinderbox-two.service"]]
    assert "gpu-check: service two is restarted: its container had lost the GPU" in capsys.readouterr().err


def test_engines_that_keep_their_gpu_go_on(docker_of: Callable[..., Docker], commands: list[list[str]]) -> None:
    docker_of(one=(GPUS, True))
    with gpus_kept(pytest.fail):
        pass
    assert commands == []


def test_only_those_are_asked_that_were_given_one_and_saw_it_before(
    docker_of: Callable[..., Docker], commands: list[list[str]]
) -> None:
    docker = docker_of(cpu=("null", False), blind=(GPUS, False))
    with gpus_kept(pytest.fail):
        pass
    # An image without nvidia-smi says nothing either way.
    assert docker.asked == ["blind"]
    assert commands == []


def test_a_host_without_engines_or_docker_is_not_held_up(
    docker_of: Callable[..., Docker], commands: list[list[str]]
) -> None:
    docker_of()
    with gpus_kept(pytest.fail):
        pass
    assert commands == []
