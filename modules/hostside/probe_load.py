"""Measure how fast this host can read a model's weight files: the disk itself, and as engines read them.

    probe_load.py --directory SNAPSHOT [--file X.gguf]             measure, unless an answer is kept; keep and print it
    probe_load.py --directory SNAPSHOT [--file X.gguf] --recall    print the kept answer, or null; read no file

A part of the files is read, 4 GiB at most and for 15 s at most a pass, and dropped from the page cache again. Prints
one JSON object: `disk` (what lies under the files), `bytes`, `sampled`, and bytes per second: `direct` (the disk,
several reads at once; null where it can not be told), `reading` and `mapping` (`cold`, `warm`). An answer is kept for
the snapshot on that disk. Exit status: 0; 1 with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.checkpoint import weight_files
    from modules.hostside.disk_rates import by_mapping, by_reading, cold_and_warm, direct, empty, sample
    from modules.hostside.kept_answer import tell
    from modules.hostside.memory_room import meminfo
    from modules.hostside.progress import Progress
else:
    from checkpoint import weight_files
    from disk_rates import by_mapping, by_reading, cold_and_warm, direct, empty, sample
    from kept_answer import tell
    from memory_room import meminfo
    from progress import Progress

PROBES = Path("/var/lib/tinderbox/probes/load")
_LIMIT = 4 * 1024**3
_PASS_S = 15.0
_MOUNTS = Path("/proc/self/mountinfo")
_BLOCK_DEVICES = Path("/sys/dev/block")


def disk_under(path: Path, mounts: Path = _MOUNTS, devices: Path = _BLOCK_DEVICES) -> dict[str, str]:
    """`source` and `type` of the filesystem that a file is on, and the `model` of its disk where there is one."""
    number = path.stat().st_dev
    wanted = f"{os.major(number)}:{os.minor(number)}"
    found = {"source": "unknown", "type": "unknown"}
    for line in mounts.read_text(errors="replace").splitlines():
        words, _, behind = line.partition(" - ")
        if words.split()[2] == wanted:
            kind, source = behind.split()[:2]
            found = {"source": source, "type": kind}
    # A partition's own folder lies in that of its disk.
    for folder in (devices / wanted, devices / wanted / ".."):
        model = folder / "device" / "model"
        if model.exists():
            return found | {"model": model.read_text().strip()}
    return found


def kept_file(directory: Path, file: str | None, probes: Path = PROBES) -> Path:
    """Where the answer about a snapshot is kept."""
    named = f"{directory}\0{file}"
    return probes / f"{hashlib.sha256(named.encode()).hexdigest()[:16]}.json"


def sizes_of(directory: Path, file: str | None) -> dict[Path, int]:
    """The weight files with their sizes. Raises `OSError` where one is not there, `ValueError` where there is none."""
    found = {path.resolve(): path.stat().st_size for path in weight_files(directory, file)}
    if not found:
        raise ValueError(f"{directory}: no weight file")
    return found


def about(sizes: dict[Path, int]) -> dict[str, Any]:
    """What an answer is kept for: these files, on this disk."""
    return {"bytes": sum(sizes.values()), "disk": disk_under(min(sizes))}


def probe(sizes: dict[Path, int], progress: Progress, limit: int = _LIMIT, seconds: float = _PASS_S) -> dict[str, Any]:
    """Measure."""
    # Half of what is free at most: the page cache that a pass fills shall push out nothing that is needed.
    extents = sample(sizes, min(limit, meminfo()["MemAvailable"] // 2))
    empty(extents)
    progress.report("reading past the page cache")
    of_disk = direct(extents, seconds)
    found: dict[str, dict[str, float]] = {}
    for name, way in (("reading", by_reading), ("mapping", by_mapping)):
        progress.report(f"{name} with and without page cache")
        cold, warm = cold_and_warm(way, extents, seconds)
        found[name] = {"cold": cold, "warm": warm}
    sampled = sum(extent.size for extent in extents)
    return about(sizes) | {"sampled": sampled, "direct": of_disk} | found


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--file")
    parser.add_argument("--recall", action="store_true")
    parser.add_argument("--probes", type=Path, default=PROBES, help="directory of kept answers")
    wish = parser.parse_args()
    sizes: dict[Path, int] = {}

    def subject() -> dict[str, Any]:
        sizes.update(sizes_of(wish.directory, wish.file))
        return about(sizes)

    kept = kept_file(wish.directory, wish.file, wish.probes)
    return tell(kept, subject, lambda: probe(sizes, Progress()), recall_only=wish.recall)


if __name__ == "__main__":
    sys.exit(main())
