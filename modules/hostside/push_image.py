"""Put an image into this host's own registry, from where the fleet's others pull it.

    push_image.py NAME PORT

Writes the job's `result.json`: {"digest": of its manifest, "id": the image's, "size": bytes of all layers, compressed}.
Layers that the registry has from an earlier transfer are not compressed again. Exit status: 0 it is there; 1 not, with
the reason in the last lines; nothing is offered any more then.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.image_store import STORE, Store
    from modules.hostside.job_result import tell_result
    from modules.hostside.offer_images import end
    from modules.hostside.progress import Progress
else:
    import docker_cli as docker
    from docker_cli import DockerError
    from image_store import STORE, Store
    from job_result import tell_result
    from offer_images import end
    from progress import Progress

_LAYER = re.compile(r"^([0-9a-f]{12}): (.+)$")
_THERE = ("Pushed", "Layer already exists", "Mounted from")
# What docker itself needs besides.
_SPARE = 1 << 30


def require_space(size: int, had: bool, store: Path) -> None:
    """Refuse what the disk can not hold. `size`: of the image as docker counts it; compressed it is smaller."""
    free = shutil.disk_usage(store).free
    if not had and free < size // 2 + _SPARE:
        raise DockerError(
            f"{store} has {free / 2**30:.1f} GiB free; the layers of the image, compressed, may take "
            f"{size / 2**31:.1f} GiB there while they are passed on: make room"
        )


def push(name: str, port: int, progress: Progress) -> dict[str, object]:
    """Push; the result."""
    image = docker.inspect(name)
    if image is None:
        raise DockerError(f"{name} is not here")
    repository, _, tag = name.rpartition(":")
    store = Store()
    had = any(stored.rpartition(":")[0] == repository for stored in store.images())
    require_space(int(image.get("Size", 0)), had, STORE)
    pushed = f"127.0.0.1:{port}/{name}"
    tagged = docker.capture("image", "tag", name, pushed)
    if tagged.returncode != 0:
        raise DockerError(f"docker tag: {tagged.stderr.strip()}")
    layers: dict[str, bool] = {}
    try:
        with docker.lines("push", pushed) as said:
            for line in said:
                if found := _LAYER.match(line.strip()):
                    layers[found[1]] = layers.get(found[1], False) or found[2].startswith(_THERE)
                    progress.report("compressing layers", sum(layers.values()), len(layers), "layers")
    except DockerError as error:
        raise DockerError(f"{name} could not be put into this host's registry: the lines above say why") from error
    finally:
        docker.capture("image", "rm", pushed)
    found_manifest = store.manifest(repository, tag)
    if found_manifest is None:
        raise DockerError(f"{name} was pushed, but the registry does not have it")
    digest, _, path = found_manifest
    manifest = json.loads(path.read_text())
    size = sum(int(layer["size"]) for layer in manifest.get("layers", ()))
    return {"digest": digest, "id": image["Id"], "size": size}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("port", type=int)
    options = parser.parse_args()
    try:
        docker.await_daemon()
        result = push(options.name, options.port, Progress())
    except (DockerError, OSError) as error:
        end()
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    tell_result(result)
    print(f"{options.name} is {result['digest']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
