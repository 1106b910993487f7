"""Hashing all files of a model on a host, beside what its cores and its disk can do."""

from __future__ import annotations

import json
import statistics

from benchmarks.result import Result
from benchmarks.shaped_lab import HOME, ShapedLab, shaped_lab

SIZE = 1 << 30
RUNS = 3
_MB = 1_000_000
_TIMED = (
    "f=$(sudo sh -c 'ls -d {folder}*' | head -1); {before}; s=$(date +%s%N); {command} > /dev/null 2>&1; "
    "echo $(( $(date +%s%N) - s ))"
)
_HASHING = ("sudo cat $f > /dev/null", "sudo openssl dgst -sha256 $f")
_READING = (":", "sudo dd if=$f of=/dev/null bs=8M iflag=direct")


def weights_verify() -> Result:
    """Our rate over the lower of `openssl dgst -sha256` times cores and the disk's sequential read, taken in turns."""
    with shaped_lab(1) as lab:
        (host,) = lab.hosts
        model = lab.model("verify", SIZE)
        lab.weights(model, "verify", [host])
        folder, cores = lab.folder(model, "verify"), int(lab.ssh(host, "nproc"))
        words = f"--repository {model.name} --revision {model.commit} --home {HOME}/verify --hash"
        ours: list[float] = []
        hashing: list[float] = []
        reading: list[float] = []
        for _ in range(RUNS):
            reading.append(_rate(lab, host, folder, *_READING))
            hashing.append(_rate(lab, host, folder, *_HASHING) * cores)
            said = json.loads(lab.ssh(host, f"sudo python3 /usr/local/lib/tinderbox/verify_weights.py {words}"))
            ours.append(SIZE / said["hashed_s"])
    rate, bounds = statistics.median(ours), (statistics.median(hashing), statistics.median(reading))
    return Result(
        ours=rate / _MB,
        peer=min(bounds) / _MB,
        ratio=rate / min(bounds),
        unit="MB/s",
        workload=(
            f"sha256 of {SIZE >> 20} MiB in four files on a lab host, median of {RUNS}; peer: the lower of openssl on "
            "one file in memory, times cores, and dd from the disk past the page cache"
        ),
        commands=(
            "verify_weights.py --hash",
            "openssl dgst -sha256 FILE",
            "dd if=FILE of=/dev/null bs=8M iflag=direct",
        ),
        details={"openssl times cores": bounds[0] / _MB, "disk": bounds[1] / _MB, "cores": cores},
    )


def _rate(lab: ShapedLab, host: str, folder: str, before: str, command: str) -> float:
    """Bytes per second, over one of the four files."""
    nanoseconds = int(lab.ssh(host, _TIMED.format(folder=folder, before=before, command=command)))
    return SIZE / 4 / nanoseconds * 1e9
