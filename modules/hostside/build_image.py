"""Build a container image as its request says, prove that it starts, and only then give it its name.

    build_image.py REQUEST.json

The request: `tag`, `digest` (of the recipe), `base` (reference to pull), `files` (name → text, with the Dockerfile),
`size_gib`, and what else `Request` has. An image that was built from the same recipe before and has lost its name gets
it back. Of a build that failed, `result.json` in the job's directory holds the step and its last lines. Exit status: 0
the tag is there; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.atomic import write_json
    from modules.hostside.brought_images import note_image, noted_build
    from modules.hostside.build_evidence import BuildEvidence, kernel_lines, oom_kills
    from modules.hostside.build_memory import MemoryShortError, room
    from modules.hostside.build_request import Request
    from modules.hostside.build_steps import BuildSteps, PullLayers
    from modules.hostside.build_times import StepClock, Times, others_took
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.one_build import alone
    from modules.hostside.pause_services import ServiceError
    from modules.hostside.progress import Progress
    from modules.hostside.provenance import RECIPE_LABEL, labels, told_of
else:
    import docker_cli as docker
    from atomic import write_json
    from brought_images import note_image, noted_build
    from build_evidence import BuildEvidence, kernel_lines, oom_kills
    from build_memory import MemoryShortError, room
    from build_request import Request
    from build_steps import BuildSteps, PullLayers
    from build_times import StepClock, Times, others_took
    from docker_cli import DockerError
    from one_build import alone
    from pause_services import ServiceError
    from progress import Progress
    from provenance import RECIPE_LABEL, labels, told_of

CHECK_LABEL = "tinderbox.check"
GPUS_LABEL = "tinderbox.gpus"
SITE = Path("/etc/tinderbox/network.env")
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
PROVENANCE = "tinderbox-image.json"
_GIB = 1024**3


def site_settings(network: str, jobs: int) -> str:
    """What every step of the build finds in its environment."""
    wanted = {
        "BUILD_JOBS": str(jobs),
        "MAX_JOBS": str(jobs),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        "MAKEFLAGS": f"-j{jobs}",
    }
    return network.rstrip("\n") + "\n" + "".join(f'{name}="{value}"\n' for name, value in wanted.items())


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
        raise DockerError(f"{reference} could not be pulled: the lines above say why") from error


def build(request: Request, folder: Path, jobs: int, progress: Progress) -> str:
    """The id of a freshly built image, which has no name yet."""
    context, identity, site = folder / "context", folder / "image-id", folder / "site.env"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir()
    for name, text in request.files.items():
        (context / name).write_text(text)
    base = (docker.inspect(request.base) or {}).get("RepoDigests") or []
    told = told_of(json.loads(request.files.get(PROVENANCE, "{}")), request.digest, base, time.time())
    (context / PROVENANCE).write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
    site.touch(mode=0o600)
    site.write_text(site_settings(SITE.read_text() if SITE.exists() else "", jobs))
    words = ["build", "--progress", "plain", "--network", "host", "--iidfile", str(identity)]
    words += ["--build-arg", f"BASE={request.base}"]
    words += [word for name, value in labels(told).items() for word in ("--label", f"{name}={value}")]
    words += ["--secret", f"id=site,src={site}", "--secret", f"id=authorities,src={AUTHORITIES}", str(context)]
    try:
        run(words, request, folder, progress)
    finally:
        site.unlink(missing_ok=True)
    return identity.read_text().strip()


def run(words: list[str], request: Request, folder: Path, progress: Progress) -> None:
    """Run docker's build: tell how far it is and how long it will take; of a failure, keep what matters."""
    steps, clock, evidence = BuildSteps(), StepClock(), BuildEvidence()
    began, kills = time.time(), oom_kills()
    times = Times.of(folder.parent / f"{request.recipe}.times.json", request.files["Dockerfile"])
    try:
        with docker.lines(*words, environment={"DOCKER_BUILDKIT": "1", "BUILDX_BUILDER": "default"}) as said:
            for line in said:
                clock.hear(line, time.monotonic())
                evidence.hear(line)
                if steps.hear(line):
                    left = clock.left(times.known)
                    note = others_took(request.build_minutes, partial=clock.is_partial) if left is None else ""
                    progress.report(steps.step, steps.done, steps.total, "steps", left_s=left, note=note)
    except DockerError:
        failed = {"step": evidence.step(), "lines": evidence.lines(), "kernel": kernel_lines(began, kills)}
        if "TINDERBOX_JOB_DIR" in os.environ:
            # Where the disk is full, the log has it all.
            with suppress(OSError):
                write_json(Path(os.environ["TINDERBOX_JOB_DIR"]) / "result.json", {"failed": failed})
        raise
    finally:
        with suppress(OSError):
            times.add(clock)


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
    with alone(request.tag, progress):
        image = earlier(request.digest)
        if image is None:
            docker.require_builder(version)
            require_space(request.size_gib)
            there = docker.inspect(request.base) is not None
            pull(request.base, progress)
            if not there:
                note_image(request.base, str((docker.inspect(request.base) or {}).get("Id")))
            with room(request.need, progress) as jobs, noted_build():
                image = build(request, folder, jobs, progress)
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
    except (DockerError, MemoryShortError, ServiceError, OSError) as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
