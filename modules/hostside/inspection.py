"""Run programs out of an image to look at it: each in a container of its own, bounded in time, without a network."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.docker_cli import DockerError
else:
    import docker_cli as docker
    from docker_cli import DockerError

GPUS_LABEL = "tinderbox.gpus"
# What `timeout` says of a program that it ended.
_TIMED_OUT = 124
# Docker's own refusals, and those of `timeout`: the program can not be started, or is not there.
_NOT_RUN = (125, 126, 127)
_SHOWN_LINES = 3


class Inspection:
    """Of an image by its id. `budget_s`: for all programs together. `mounts`: as `docker run -v` takes them.

    `gpus`: as `docker run --gpus` takes them.
    """

    def __init__(self, image: str, budget_s: float, mounts: Sequence[str] = (), gpus: str | None = None) -> None:
        self._image = image
        self._deadline = time.monotonic() + budget_s
        self._options = [word for mount in mounts for word in ("--volume", mount)]
        self._options += [] if gpus is None else ["--gpus", gpus]
        self._runs = 0

    @property
    def left(self) -> float:
        """Seconds of the budget; at least one, so that whoever comes last fails by name."""
        return max(1.0, self._deadline - time.monotonic())

    def lines(self, *words: str, seconds: float, may_fail: bool = False) -> Generator[str, None, None]:
        """The output of a program in the image, line by line as it comes; who stops listening ends the program.

        `seconds`: it is ended after them. Raises `DockerError` where docker can not run it, and unless it `may_fail`
        also where it fails or was ended.
        """
        self._runs += 1
        name = f"tinderbox-attest-{os.getpid()}-{self._runs}"
        limit = min(seconds, self.left)
        # Few CPU shares: a server may be running beside it.
        command = ["docker", "run", "--rm", "--name", name, "--network", "none", "--cpu-shares", "128"]
        command += [*self._options, "--entrypoint", "timeout", self._image, "--kill-after=10", str(limit), *words]
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
                    docker.capture("rm", "--force", name)
        if process.returncode in _NOT_RUN or (process.returncode != 0 and not may_fail):
            said = " / ".join(last)
            if process.returncode == _TIMED_OUT:
                raise DockerError(f"{words[0]} did not end within {limit:.0f} s: {said}")
            raise DockerError(f"{words[0]} failed with exit status {process.returncode}: {said}")
