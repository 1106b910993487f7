"""How long docker's daemon is waited for, and what is told when it does not come."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.hostside import docker_cli

ABSENT = """\
#!/bin/sh
echo '{"Client": {"Version": "28.5.1"}, "Server": null}'
echo 'Cannot connect to the Docker daemon. Is the docker daemon running?' >&2
exit 1
"""
THERE = """\
#!/bin/sh
echo '{"Client": {"Version": "28.5.1"}, "Server": {"Version": "28.5.1"}}'
"""


class Naps:
    """Counts the waits; the daemon may come up during one of them."""

    def __init__(self, programs: Path, up_after: int | None = None) -> None:
        self._programs = programs
        self._up_after = up_after
        self.count = 0

    def __call__(self, _: float) -> None:
        self.count += 1
        if self.count == self._up_after:
            install(self._programs, "docker", THERE)


def install(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(docker_cli, "_WAIT_S", 5)
    install(tmp_path, "docker", ABSENT)
    return tmp_path


def systemd_says(folder: Path, state: str, job: str = "") -> None:
    install(folder, "systemctl", f"#!/bin/sh\nprintf 'ActiveState={state}\\nJob={job}\\n'\n")


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_a_daemon_that_nobody_starts_is_not_waited_for(state: str, programs: Path) -> None:
    systemd_says(programs, state)
    naps = Naps(programs)
    with pytest.raises(docker_cli.DockerError, match=r"Is the docker daemon running\? Start it \(systemctl start"):
        docker_cli.await_daemon(naps)
    assert naps.count == 0


@pytest.mark.parametrize(("state", "job"), [("activating", ""), ("inactive", "7"), ("active", "0")])
def test_a_daemon_that_may_come_is_waited_for(state: str, job: str, programs: Path) -> None:
    systemd_says(programs, state, job)
    assert docker_cli.await_daemon(Naps(programs, up_after=3)) == "28.5.1"


def test_no_daemon_is_waited_for_without_end(programs: Path) -> None:
    systemd_says(programs, "activating")
    naps = Naps(programs)
    with pytest.raises(docker_cli.DockerError, match="dockerd does not answer"):
        docker_cli.await_daemon(naps)
    assert naps.count == 5


def test_a_host_without_docker_is_told_the_stage_that_brings_it(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (programs / "docker").unlink()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(docker_cli.DockerError, match=r"run deploys/runtime\.py first"):
        docker_cli.await_daemon()
