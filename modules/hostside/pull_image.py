"""Pull a container image; writes the job's `result.json`: {"digest": what the reference stands for}.

    pull_image.py REFERENCE [REPOSITORY]

With a REPOSITORY the image is called that, with the first digits of its digest as the tag. The registry's own name for
it goes where it was not here before: an image that the host's owner has pulled stays as it was. Exit status: 0 it is
here; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.brought_images import note_image
    from modules.hostside.build_image import pull
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.job_result import tell_result
    from modules.hostside.progress import Progress
else:
    import docker_cli as docker
    from brought_images import note_image
    from build_image import pull
    from docker_cli import DockerError
    from job_result import tell_result
    from progress import Progress


def digest_of(digests: list[str], reference: str) -> str | None:
    """The digest under which a registry has the image, from `RepoDigests`."""
    repository = reference.split("@", 1)[0]
    name, colon, tag = repository.rpartition(":")
    plain = (name if colon and "/" not in tag else repository).removeprefix("docker.io/").removeprefix("library/")
    return next((d.split("@", 1)[1] for d in digests if d.split("@", 1)[0] == plain), None)


def fetch(reference: str, repository: str | None, progress: Progress) -> str | None:
    """Pull, and give the image our name for it. Returns its digest; raises `DockerError`.

    Without a `repository` it keeps the name that it has, and may be an image that was made here and has no digest.
    """
    before = docker.inspect(reference) is not None
    pull(reference, progress)
    image = docker.inspect(reference) or {}
    digest = reference.partition("@")[2] or digest_of(image.get("RepoDigests") or [], reference)
    if repository is None:
        if not before:
            note_image(reference, str(image.get("Id")))
        print(f"{reference} is {digest or image.get('Id')}")
        return digest
    if not digest:
        raise DockerError(f"the registry gave {reference} no digest, so it can not be pinned")
    name = f"{repository}:{digest.partition(':')[2][:12]}"
    tagged = docker.capture("image", "tag", reference, name)
    if tagged.returncode != 0:
        raise DockerError(f"docker tag: {tagged.stderr.strip()}")
    if not before:
        docker.capture("image", "rm", reference)
    print(f"{reference} is {digest}, here called {name}")
    return digest


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference")
    parser.add_argument("repository", nargs="?")
    options = parser.parse_args()
    try:
        docker.await_daemon()
        digest = fetch(options.reference, options.repository, Progress())
    except DockerError as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    tell_result({"digest": digest})
    return 0


if __name__ == "__main__":
    sys.exit(main())
