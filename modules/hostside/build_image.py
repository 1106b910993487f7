"""Build a container image as its request says, prove that it starts, and only then give it its name.

    build_image.py REQUEST.json

The request: `tag`, `digest` (of the recipe), `base` (reference to pull), `files` (name → text, with the Dockerfile) and
`size_gib`. An image that was built from the same recipe before and has lost its name gets it back. Exit status: 0 the
tag is there; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.build_steps import BuildSteps, PullLayers
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.progress import Progress
else:
    import docker_cli as docker
    from build_steps import BuildSteps, PullLayers
    from docker_cli import DockerError
    from progress import Progress

RECIPE_LABEL = "tinderbox.recipe"
CHECK_LABEL = "tinderbox.check"
GPUS_LABEL = "tinderbox.gpus"
SITE = Path("/etc/tinderbox/network.env")
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
PROVENANCE = "tinderbox-image.json"
_LOCK = Path("/run/lock/tinderbox-build.lock")
_GIB = 1024**3
# A CUDA compiler takes up to 8 GiB, and the host itself needs some (flashinfer issue 3634, PR 3899).
_COMPILER_GIB, _SPARE_GIB = 8, 16


@dataclass(frozen=True)
class Request:
    """What is to be built; see above."""

    tag: str
    digest: str
    base: str
    files: dict[str, str]
    size_gib: float

    @classmethod
    def read(cls, path: Path) -> Request:
        """The request at `path`."""
        found = json.loads(path.read_text())
        return cls(found["tag"], found["digest"], found["base"], found["files"], found["size_gib"])


def compilers(meminfo: str, cpus: int) -> int:
    """How many compilers the memory bears at once, at least one; GB10 does not kill what takes too much, it wedges."""
    available = next(int(line.split()[1]) for line in meminfo.splitlines() if line.startswith("MemAvailable:"))
    return max(1, min(cpus, int((available / 1024**2 - _SPARE_GIB) / _COMPILER_GIB)))


def site_settings(network: str, jobs: int) -> str:
    """What every step of the build finds in its environment."""
    wanted = {
        "BUILD_JOBS": str(jobs),
        "MAX_JOBS": str(jobs),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        "MAKEFLAGS": f"-j{jobs}",
    }
    return network.rstrip("\n") + "\n" + "".join(f'{name}="{value}"\n' for name, value in wanted.items())


@contextmanager
def alone(progress: Progress) -> Iterator[None]:
    """One build at a time: two would take twice the memory."""
    with _LOCK.open("w") as lock:
        progress.report("waiting for another build to end")
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def require_space(size_gib: float) -> None:
    """Refuse what docker's disk can not hold."""
    root = docker.capture("info", "--format", "{{.DockerRootDir}}").stdout.strip()
    free = shutil.disk_usage(root).free / _GIB
    if free < size_gib:
        raise DockerError(f"{root} has {free:.1f} GiB free, the image takes about {size_gib} GiB: docker builder prune")


def pull(reference: str, progress: Progress) -> None:
    """Have an image here. Raises `DockerError`, with what the registry said."""
    if docker.inspect(reference) is not None:
        return
    layers = PullLayers()
    try:
        with docker.lines("pull", reference) as said:
            for line in said:
                if layers.hear(line):
                    progress.report(f"pulling {reference}", layers.done, layers.total, "layers")
    except DockerError as error:
        raise DockerError(
            f"{reference} could not be pulled: the lines above say why. Where it is the registry's certificate or its "
            "name, set `network.ca_bundle` or `network.registry`"
        ) from error


def build(request: Request, folder: Path, progress: Progress) -> str:
    """The id of a freshly built image, which has no name yet."""
    context, identity, site = folder / "context", folder / "image-id", folder / "site.env"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir()
    for name, text in request.files.items():
        (context / name).write_text(text)
    told = json.loads(request.files.get(PROVENANCE, "{}"))
    told |= {"digest": request.digest, "built_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    (context / PROVENANCE).write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    jobs = compilers(Path("/proc/meminfo").read_text(), os.cpu_count() or 1)
    site.touch(mode=0o600)
    site.write_text(site_settings(SITE.read_text() if SITE.exists() else "", jobs))
    words = ["build", "--progress", "plain", "--network", "host", "--iidfile", str(identity)]
    words += ["--build-arg", f"BASE={request.base}", "--label", f"{RECIPE_LABEL}={request.digest}"]
    words += ["--secret", f"id=site,src={site}", "--secret", f"id=authorities,src={AUTHORITIES}", str(context)]
    steps = BuildSteps()
    try:
        with docker.lines(*words, environment={"DOCKER_BUILDKIT": "1", "BUILDX_BUILDER": "default"}) as said:
            for line in said:
                if steps.hear(line):
                    progress.report(steps.step, steps.done, steps.total, "steps")
    finally:
        site.unlink(missing_ok=True)
    return identity.read_text().strip()


def earlier(digest: str) -> str | None:
    """An image that was built from the same recipe."""
    found = docker.capture("images", "--quiet", "--no-trunc", "--filter", f"label={RECIPE_LABEL}={digest}").stdout
    return next(iter(found.split()), None)


def check(image: str, progress: Progress) -> None:
    """Run what the image says of itself that must work."""
    labels = (docker.inspect(image) or {}).get("Config", {}).get("Labels") or {}
    if CHECK_LABEL not in labels:
        return
    command = json.loads(labels[CHECK_LABEL])
    progress.report(f"checking: {' '.join(command)}")
    gpus = ["--gpus", labels[GPUS_LABEL]] if labels.get(GPUS_LABEL) else []
    with docker.lines(
        "run", "--rm", "--network", "none", *gpus, "--entrypoint", command[0], image, *command[1:]
    ) as said:
        for _ in said:
            pass


def make(request: Request, folder: Path, progress: Progress) -> None:
    """Build, or find; check; name."""
    version = docker.await_daemon()
    with alone(progress):
        image = earlier(request.digest)
        if image is None:
            docker.require_builder(version)
            require_space(request.size_gib)
            pull(request.base, progress)
            image = build(request, folder, progress)
        else:
            print(f"{image} was built from this recipe before")
        try:
            check(image, progress)
        except DockerError as error:
            docker.capture("image", "rm", image)
            raise DockerError("the image was built, but what it is for does not work in it (see above)") from error
        tagged = docker.capture("image", "tag", image, request.tag)
        if tagged.returncode != 0:
            raise DockerError(f"docker tag: {tagged.stderr.strip()}")
    print(f"{request.tag} is {image}")


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("request", type=Path)
    path = parser.parse_args().request
    try:
        make(Request.read(path), path.parent, Progress())
    except DockerError as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
