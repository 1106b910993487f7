"""Pull a container image; writes the job's `result.json`: {"digest": what the reference stands for}.

    pull_image.py REFERENCE

Exit status: 0 it is here; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.atomic import write_json
    from modules.hostside.build_image import pull
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.progress import Progress
else:
    import docker_cli as docker
    from atomic import write_json
    from build_image import pull
    from docker_cli import DockerError
    from progress import Progress


def digest_of(digests: list[str], reference: str) -> str | None:
    """The digest under which a registry has the image, from `RepoDigests`."""
    repository = reference.split("@", 1)[0]
    name, colon, tag = repository.rpartition(":")
    plain = (name if colon and "/" not in tag else repository).removeprefix("docker.io/").removeprefix("library/")
    return next((d.split("@", 1)[1] for d in digests if d.split("@", 1)[0] == plain), None)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference")
    reference = parser.parse_args().reference
    try:
        docker.await_daemon()
        pull(reference, Progress())
    except DockerError as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    digest = digest_of((docker.inspect(reference) or {}).get("RepoDigests") or [], reference)
    own = os.environ.get("TINDERBOX_JOB_DIR")
    if own:
        write_json(Path(own) / "result.json", {"digest": digest})
    print(f"{reference} is {digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
