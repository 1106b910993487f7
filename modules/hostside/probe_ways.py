"""Measure in an engine's image how fast each way of loading brings a model to the device: see `load_ways.py`.

    probe_ways.py --image REFERENCE --directory SNAPSHOT --hub DIR --device cuda:0 [--gpus all]            measure
    probe_ways.py --image REFERENCE --directory SNAPSHOT --hub DIR --device cuda:0 [--gpus all] --recall   no measuring

The first weight files are loaded, as many as 8 GiB and a quarter of the free memory allow. Prints what load_ways.py
says, or null with --recall where nothing is kept; an answer is kept for the snapshot, the image and the disk. Exit
status: 0; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.atomic import write_json
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.job import AFTERWARDS
    from modules.hostside.kept_answer import TROUBLES, tell
    from modules.hostside.memory_room import meminfo
    from modules.hostside.probe_load import PROBES, disk_under, sizes_of
    from modules.hostside.progress import Progress
else:
    import docker_cli as docker
    from atomic import write_json
    from docker_cli import DockerError
    from job import AFTERWARDS
    from kept_answer import TROUBLES, tell
    from memory_room import meminfo
    from probe_load import PROBES, disk_under, sizes_of
    from progress import Progress

_PROGRAMS = Path(__file__).resolve().parent
_LIMIT = 8 * 1024**3
# A load holds a file in memory and on the device, which on a GB10 is the same memory; and others need some.
_SHARE = 4
_GIB = 1024**3


def sample_bytes(sizes: dict[Path, int], available: int) -> int:
    """How many bytes of files may be loaded. Raises `ValueError` where memory is too short for the first file."""
    limit = min(_LIMIT, available // _SHARE)
    first = sizes[min(sizes)]
    if first > available // _SHARE:
        raise ValueError(
            f"loading {first / _GIB:.1f} GiB on trial needs {_SHARE * first / _GIB:.1f} GiB of free memory, "
            f"{available / _GIB:.1f} GiB are free: stop what serves here first (systemctl stop tinderbox-<service>)"
        )
    return limit


def container_arguments(wish: argparse.Namespace, name: str, files: list[str], limit: int) -> list[str]:
    """`docker run …`: no network, weights and programs read-only."""
    words = ["docker", "run", "--rm", "--pull", "never", "--name", name, "--network", "none"]
    words += ["--gpus", wish.gpus] if wish.gpus else []
    words += ["--volume", f"{wish.hub}:{wish.hub}:ro", "--volume", f"{_PROGRAMS}:{_PROGRAMS}:ro"]
    words += ["--env", "PYTHONDONTWRITEBYTECODE=1", "--entrypoint", "python3", wish.image]
    return [*words, str(_PROGRAMS / "load_ways.py"), "--device", wish.device, "--bytes", str(limit), *files]


def measure(wish: argparse.Namespace, sizes: dict[Path, int], progress: Progress) -> dict[str, Any]:
    """Run it. Raises `DockerError` where it gives no answer."""
    docker.await_daemon()
    limit = sample_bytes(sizes, meminfo()["MemAvailable"])
    name = f"tinderbox-load-ways-{os.getpid()}"
    own = os.environ.get("TINDERBOX_JOB_DIR")
    if own:
        write_json(Path(own) / AFTERWARDS, {"commands": [["docker", "rm", "--force", name]]})
    progress.report("loading by each way")
    done = subprocess.run(
        container_arguments(wish, name, sorted(map(str, sizes)), limit),
        stdout=subprocess.PIPE, stderr=None, text=True, errors="replace", check=False,
    )  # fmt: skip
    if own:
        (Path(own) / AFTERWARDS).unlink(missing_ok=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise DockerError(f"loading in {wish.image} ended with exit status {done.returncode}, without an answer")
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def kept_file(directory: Path, image: str, probes: Path = PROBES) -> Path:
    """Where the answer about a snapshot in an image is kept."""
    named = f"{directory}\0{image}"
    return probes / f"ways-{hashlib.sha256(named.encode()).hexdigest()[:16]}.json"


def about(wish: argparse.Namespace, sizes: dict[Path, int]) -> dict[str, Any]:
    """What an answer is kept for."""
    image = docker.inspect(wish.image)
    return {"image": None if image is None else image["Id"], "disk": disk_under(min(sizes)), "device": wish.device}


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", required=True)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--hub", type=Path, required=True, help="the hub cache that the snapshot's links lead into")
    parser.add_argument("--device", required=True)
    parser.add_argument("--gpus", help="as docker takes it")
    parser.add_argument("--recall", action="store_true")
    parser.add_argument("--probes", type=Path, default=PROBES, help="directory of kept answers")
    return parser.parse_args(words)


def main() -> int:
    """Entry point."""
    wish = parse()
    sizes: dict[Path, int] = {}

    def subject() -> dict[str, Any]:
        sizes.update(sizes_of(wish.directory, None))
        return about(wish, sizes)

    return tell(
        kept_file(wish.directory, wish.image, wish.probes),
        subject,
        lambda: measure(wish, sizes, Progress()),
        recall_only=wish.recall,
        troubles=(*TROUBLES, DockerError),
    )


if __name__ == "__main__":
    sys.exit(main())
