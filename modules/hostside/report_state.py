"""All that a report tells of this host, as one JSON object: one round trip for the controller. Changes nothing.

    report_state.py '{"SERVICE": {"model": DIRECTORY, "file": NAME or null}, ...}'

`model` is the directory in the hub cache; `file` its one GGUF file, where it has one. Of each service: its unit,
the releases of its ledger with what happened to them, every measurement, what its checkpoint holds, and how fast it is
loaded. Only the newest measurement and that of the release in force keep their samples. What can not be learned is
null, never guessed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.checkpoint import summarize
    from modules.hostside.gpu_sample import gpu
    from modules.hostside.kept_load import kept_load
    from modules.hostside.ledger import STATE, Ledger, now
    from modules.hostside.service_unit import unit_name, unit_state
else:
    from atomic import read_json
    from checkpoint import summarize
    from gpu_sample import gpu
    from kept_load import kept_load
    from ledger import STATE, Ledger, now
    from service_unit import unit_name, unit_state

# Some years of weekly releases; older ones are in no plot.
NEWEST = 200


def releases(ledger: Ledger) -> list[dict[str, Any]]:
    """Every release that can be read, by when it was first installed: what it is, and what happened to it."""
    found = []
    for path in ledger.directory.glob("*.json"):
        entry: dict[str, Any] = {} if path.is_symlink() else ledger.entry(path.stem) or {}
        if entry.get("events"):
            release = entry.get("release") or {}
            found.append({
                "id": path.stem,
                "image": release.get("image"),
                "commit": release.get("commit"),
                "events": entry["events"],
            })  # fmt: skip
    return sorted(found, key=lambda one: str(one["events"][0].get("at")))[-NEWEST:]


def measurements(folder: Path, current: str | None) -> list[dict[str, Any]]:
    """What the gate has kept, the oldest first."""
    found = [one for one in map(read_json, sorted(folder.rglob("*.json"))) if one and one.get("finished")]
    found = sorted(found, key=lambda one: str(one["finished"]))[-NEWEST:]
    for one in found[:-1]:
        if one.get("release") != current:
            one["samples"] = {}
    return found


def checkpoint(model: Path, commit: str | None, file: str | None) -> dict[str, Any] | None:
    """The checkpoint that is served, by its headers; None where it is not here, or not to be understood."""
    if commit is None or not (model / "snapshots" / commit).is_dir():
        return None
    try:
        return summarize(model / "snapshots" / commit, file)
    except (OSError, ValueError, KeyError):
        return None


def service(name: str, wish: dict[str, Any], root: Path = STATE) -> dict[str, Any]:
    """All of one service."""
    ledger = Ledger(name, root)
    current = ledger.linked("current")
    entry: dict[str, Any] = (ledger.entry(current) or {}) if current else {}
    release: dict[str, Any] = entry.get("release") or {}
    commit = release.get("commit")
    return {
        "unit": unit_state(unit_name(name)),
        "current": current,
        "last_good": ledger.linked("last-good"),
        "releases": releases(ledger),
        "measurements": measurements(root / "gates" / name, current),
        "checkpoint": checkpoint(Path(wish["model"]), commit, wish["file"]),
        "load": kept_load(Path(wish["model"]), commit, wish["file"], release.get("image"), root / "probes" / "load"),
    }


def memory_bytes() -> int | None:
    """MemTotal."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:"))
    except (OSError, ValueError, StopIteration):
        return None


def main() -> int:
    """Print it."""
    wishes: dict[str, dict[str, Any]] = json.loads(sys.argv[1])
    document = {
        "at": now(),
        "gpu": gpu(),
        "memory": memory_bytes(),
        "rollout": read_json(STATE / "ledger" / "rollout.json"),
        "services": {name: service(name, wish) for name, wish in wishes.items()},
    }
    sys.stdout.write(json.dumps(document) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
