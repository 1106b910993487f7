"""Load a part of a checkpoint to a device by each way there is, and say how fast each was. Runs in the engine's image.

    load_ways.py --device cuda:0 [--bytes N] [--rounds N] [--only WAY]... FILE.safetensors...

Every way has its turn in every round, in a process of its own, so that none finds what another has left and a disk that
changes its mind shows in all of them. It reads every file with an empty page cache (cold) and with a full one (warm); a
file's tensors are dropped before the next file. Prints one JSON object: `device` (its name), `bytes` (of the files that
were read), `versions`, `ways`: name → `cold` and `warm` (bytes per second, of each round), or `error`. `cached`: what
share of the bytes was in the page cache when the cold round began; where it is not about 0, cold says nothing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.loaders import WAYS, Way, timed
    from modules.hostside.page_cache import cached, drop, fill
else:
    from loaders import WAYS, Way, timed
    from page_cache import cached, drop, fill

SIGN = "tinderbox-way "
_WAY_S = 900
_PACKAGES = ("torch", "safetensors", "fastsafetensors", "vllm")


def chosen(sizes: dict[str, int], limit: int) -> list[str]:
    """The first files, as many as stay within `limit` bytes; at least one."""
    taken: list[str] = []
    for path in sorted(sizes):
        if taken and sum(sizes[each] for each in taken) + sizes[path] > limit:
            break
        taken.append(path)
    return taken


def measure(way: Way, files: list[str], device: str) -> dict[str, float]:
    """One turn of a way."""
    import torch

    def synchronize() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    # The device's own start is no part of a load.
    torch.zeros(1, device=device)
    synchronize()
    total = sum(Path(path).stat().st_size for path in files)
    for path in files:
        drop(path)
    left = sum(cached(path) for path in files) / total
    cold = timed(way, files, device, synchronize)
    for path in files:
        fill(path)
    warm = timed(way, files, device, synchronize)
    for path in files:
        drop(path)
    return {"cold": cold, "warm": warm, "cached": left}


def apart(name: str, words: list[str]) -> dict[str, Any]:
    """A way in its own process; what it said in place of figures stands in `error`."""
    command = [sys.executable, str(Path(__file__).resolve()), "--one", name, *words]
    try:
        done = subprocess.run(
            command, env={**os.environ, **WAYS[name].environment}, capture_output=True, text=True, errors="replace",
            timeout=_WAY_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"error": f"did not end within {_WAY_S} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith(SIGN)]
    if done.returncode == 0 and lines:
        answer: dict[str, Any] = json.loads(lines[-1].removeprefix(SIGN))
        return answer
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return {"error": (said[-1] if said else f"exit status {done.returncode}")[-300:]}


def all_turns(names: list[str], rounds: int, words: list[str]) -> dict[str, dict[str, Any]]:
    """Every way's figures, round after round; one that failed once is not tried again."""
    found: dict[str, dict[str, Any]] = {name: {"cold": [], "warm": [], "cached": []} for name in names}
    for _ in range(rounds):
        for name in names:
            if "error" in found[name]:
                continue
            turn = apart(name, words)
            if "error" in turn:
                found[name] = turn
                continue
            for figure, value in turn.items():
                found[name][figure].append(value)
    return found


def versions() -> dict[str, str]:
    """Of what decides about the speed."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def device_name(device: str) -> str:
    """What the device is called."""
    if device == "cpu":
        return "cpu"
    import torch

    return str(torch.cuda.get_device_name(device))


def main() -> int:
    """0, also where ways failed: each says why."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True)
    parser.add_argument("--bytes", type=int, default=8 * 1024**3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", action="append", choices=[*WAYS])
    parser.add_argument("--one", choices=[*WAYS])
    parser.add_argument("files", nargs="+")
    wish = parser.parse_args()
    if wish.one is not None:
        print(SIGN + json.dumps(measure(WAYS[wish.one], wish.files, wish.device)), flush=True)
        return 0
    files = chosen({path: Path(path).stat().st_size for path in wish.files}, wish.bytes)
    answer = {
        "device": device_name(wish.device),
        "bytes": sum(Path(path).stat().st_size for path in files),
        "files": len(files),
        "versions": versions(),
        "ways": all_turns(wish.only or [*WAYS], wish.rounds, ["--device", wish.device, *files]),
    }
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
