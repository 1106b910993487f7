"""Load a container image from a bundle.

    load_image.py BUNDLE NAME

NAME: as the image is called on hosts. The file is hashed before docker sees it. Exit status: 0 it is here; 1 with the
reason in the last lines.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.bundle import Bundle, BundleError
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.progress import Progress, Tally
    from modules.hostside.provenance import RECIPE_LABEL
else:
    import docker_cli as docker
    from bundle import Bundle, BundleError
    from docker_cli import DockerError
    from progress import Progress, Tally
    from provenance import RECIPE_LABEL

_GIB = 1024**3
_PIECE = 4 * 1024 * 1024


def is_it(found: dict[str, Any] | None, image: dict[str, Any]) -> bool:
    """Whether an image of docker's is the manifest's: by its id, or, under another image store, by its recipe."""
    if found is None:
        return False
    recipe = ((found.get("Config") or {}).get("Labels") or {}).get(RECIPE_LABEL)
    return bool(found["Id"] == image["id"] or (recipe is not None and recipe == image["recipe"]))


def load(bundle: Bundle, image: dict[str, Any], progress: Progress) -> None:
    """Verify the file, load it, and see that it is what the manifest says. Raises `BundleError`, `DockerError`."""
    name = image["name"]
    if is_it(docker.inspect(name), image):
        print(f"{name} is there")
        return
    root = docker.capture("info", "--format", "{{.DockerRootDir}}").stdout.strip()
    free = shutil.disk_usage(root).free
    if free < image["bytes"]:
        raise DockerError(
            f"{root} has {free / _GIB:.1f} GiB free, image {name} takes {image['bytes'] / _GIB:.1f} GiB: make room "
            "(docker system df shows what takes it)"
        )
    size = (bundle.root / image["file"]).stat().st_size if (bundle.root / image["file"]).exists() else 0
    path = bundle.require(image["file"], Tally(progress, f"verifying image {name}", size).add)
    tally = Tally(progress, f"loading image {name}", size)
    with path.open("rb") as file, subprocess.Popen(["docker", "load"], stdin=subprocess.PIPE) as loading:
        assert loading.stdin is not None
        try:
            while piece := file.read(_PIECE):
                loading.stdin.write(piece)
                tally.add(len(piece))
            loading.stdin.close()
        except BrokenPipeError:
            pass  # docker has said why
    if loading.returncode != 0:
        raise DockerError(
            f"docker load of {path} failed (see above); {root} has {shutil.disk_usage(root).free / _GIB:.1f} GiB free"
        )
    if not is_it(docker.inspect(name), image):
        docker.capture("image", "rm", name)
        raise BundleError(f"{path} did not hold {name} as {bundle.root}'s manifest tells of it: export the bundle anew")


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("name")
    wish = parser.parse_args()
    try:
        docker.await_daemon()
        bundle = Bundle.open(wish.bundle)
        image = bundle.image(wish.name)
        load(bundle, image, Progress())
    except (BundleError, DockerError, OSError) as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    print(f"{image['name']} is {image['id']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
