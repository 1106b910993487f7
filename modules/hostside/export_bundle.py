"""Export this host's images, weights and encodings, and its tools' packages, to a bundle: a directory, see bundle.py.

    export_bundle.py JSON

JSON: `to` (the directory), `key`, `images` (`name`, `wish`, `digest`, `recipe`), `models` (`repository`, `revision`,
`commit`, `home`, `filters`), `encodings` (`name`, `sha256`, `size`), `lock` (tag → digest), `reserve_bytes`. Exit
status: 0 it is whole; 1 with the reason in the last lines.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside import export_parts as parts
    from modules.hostside.bundle import BundleError
    from modules.hostside.bundle_writer import BundleWriter
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.progress import Progress
else:
    import docker_cli as docker
    import export_parts as parts
    from bundle import BundleError
    from bundle_writer import BundleWriter
    from docker_cli import DockerError
    from progress import Progress

_LOCK = Path("/run/lock/tinderbox-bundle.lock")
_GIB = 1024**3
# Wheels of the tools, and what a file system needs for itself.
_BESIDE_BYTES = 512 * 1024**2


def require_space(writer: BundleWriter, wanted: list[parts.Part], reserve: int) -> None:
    """Refuse before the first byte what the disk can not hold."""
    root = writer.root
    missing = sum(part.size for part in wanted if not writer.has(part.path, part.of))
    # What lies there of an image that has since changed makes room.
    outdated = sum(writer.files[part.path]["size"] for part in wanted if part.path in writer.files)
    outdated -= sum(writer.files[part.path]["size"] for part in wanted if writer.has(part.path, part.of))
    # A disk of its own may be filled.
    kept = reserve if root.stat().st_dev == Path("/").stat().st_dev else 0
    need, free = missing + _BESIDE_BYTES, shutil.disk_usage(root).free + outdated
    if missing and free < need + kept:
        remain = f", and {kept / _GIB:.1f} GiB must remain (hardware.reserve_disk_gib)" if kept else ""
        raise BundleError(
            f"{root} has {free / _GIB:.1f} GiB free, the bundle needs {need / _GIB:.1f} GiB more{remain}: make room, "
            "or set bundle.export_to to a larger disk"
        )


def export(request: dict[str, Any], progress: Progress) -> None:
    """All of it."""
    docker.await_daemon()
    writer = BundleWriter(Path(request["to"]))
    images = [parts.image_part(image) for image in request["images"]]
    models = [parts.model_parts(model) for model in request["models"]]
    encodings = [parts.encoding_part(encoding) for encoding in request["encodings"]]
    wanted = [*images, *encodings, *(part for _, files in models for part in files)]
    writer.begin()
    require_space(writer, wanted, request["reserve_bytes"])
    total, done = sum(part.size for part in wanted), 0
    for part in wanted:

        def on_bytes(count: int, what: str = part.what) -> None:
            nonlocal done
            done += count
            progress.report(what, min(done, total), total, "bytes")

        if writer.has(part.path, part.of):
            on_bytes(part.size)
        else:
            writer.write(part.path, part.of, part.pieces(), on_bytes)
    wheels = parts.wheels(writer, progress)
    writer.keep_only([*(part.path for part in wanted), *wheels])
    for model, _ in models:
        parts.link_snapshot(writer.root, model)
    writer.finish(
        {
            "key": request["key"],
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "host": socket.gethostname(),
            "images": [parts.image_entry(image) for image in request["images"]],
            "models": [model for model, _ in models],
            "encodings": request["encodings"],
            "lock": request["lock"],
        }
    )
    size = sum(file["size"] for file in writer.files.values())
    print(f"{writer.root} is whole: {len(writer.files)} files, {size / _GIB:.1f} GiB")


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("request", type=json.loads)
    request = parser.parse_args().request
    os.umask(0o022)
    try:
        with _LOCK.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            export(request, Progress())
    except (BundleError, DockerError) as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{socket.gethostname()}: {request['to']}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
