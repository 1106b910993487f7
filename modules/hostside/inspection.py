"""Run programs inside an image to look at it: bounded in time, without a network, and behind whatever else runs."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.docker_cli import DockerError
else:
    import docker_cli as docker
    from docker_cli import DockerError

GPUS_LABEL = "tinderbox.gpus"
# What `timeout` says of a program that it ended, and of one that can not be started or is not there.
_TIMED_OUT = 124
_NOT_RUN = (125, 126, 127)
_SHOWN_LINES = 3
# A container whose inspector was killed ends by itself, this long after the budget.
_LINGER_S = 60


class Inspection:
    """Of an image, in a container that does nothing by itself. `deadline`: on the monotonic clock, for all programs."""

    def __init__(self, container: str, deadline: float) -> None:
        self._container = container
        self._deadline = deadline

    @property
    def left(self) -> float:
        """Seconds of the budget; at least one, so that whoever comes last fails by name."""
        return max(1.0, self._deadline - time.monotonic())

    def lines(self, *words: str, seconds: float, may_fail: bool = False) -> Generator[str, None, None]:
        """The output of a program, line by line as it comes; who closes this early ends the program.

        `seconds`: it is ended after them. Raises `DockerError` where docker can not run it, and unless it `may_fail`
        also where it fails or was ended.
        """
        limit = min(seconds, self.left)
        command = ["docker", "exec", self._container, "timeout", "--kill-after=10", str(limit), *words]
        last: list[str] = []
        ended = False
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process:
            try:
                for line in process.stdout or ():
                    last = [*last[1 - _SHOWN_LINES :], line.strip()]
                    yield line.rstrip("\n")
                ended = True
            finally:
                if not ended:
                    # The program would go on without a listener: docker tells it nothing.
                    docker.capture("restart", "-t", "0", self._container)
        status, said = process.returncode, " / ".join(last)
        refused = status in _NOT_RUN or (status != 0 and said.startswith("Error response from daemon"))
        if refused or (status != 0 and not may_fail):
            if status == _TIMED_OUT:
                raise DockerError(f"{words[0]} did not end within {limit:.0f} s: {said}")
            raise DockerError(f"{words[0]} failed with exit status {status}: {said}")


@contextmanager
def inspection(image: str, budget_s: float, mounts: Sequence[str], gpus: str | None) -> Iterator[Inspection]:
    """Start looking at an image by its id. `mounts`, `gpus`: as `docker run` takes them.

    Raises `DockerError` where no container of it can be started.
    """
    container = f"tinderbox-attest-{os.getpid()}"
    # Half the CPU shares of others: a server may be running beside it.
    words = ["run", "--detach", "--rm", "--name", container, "--network", "none", "--cpu-shares", "512"]
    words += [word for mount in mounts for word in ("--volume", mount)]
    words += [] if gpus is None else ["--gpus", gpus]
    started = docker.capture(*words, "--entrypoint", "sleep", image, str(int(budget_s + _LINGER_S)))
    try:
        if started.returncode != 0:
            raise DockerError(f"no container of the image could be started: {started.stderr.strip()}")
        yield Inspection(container, time.monotonic() + budget_s)
    finally:
        docker.capture("rm", "--force", container)
