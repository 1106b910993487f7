"""The result of a measurement as a document: what a host keeps, and what becomes of the one before it."""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import version_changes as part
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.gate_sampling import joined
    from modules.hostside.ledger import Ledger, now
    from modules.hostside.versions import image_id, versions
else:
    import version_changes as part
    from atomic import read_json, write_json
    from gate_sampling import joined
    from ledger import Ledger, now
    from versions import image_id, versions

FORMAT = 2


def document(options: argparse.Namespace, new: dict[str, Any], former: dict[str, Any] | None) -> dict[str, Any]:
    """What is kept. `parts`: workload → its repetitions, oldest first. `former`: the result that `new` is added to."""
    before: dict[str, Any] = former or {}
    known: dict[str, list[Any]] = before.get("parts") or {}
    parts: dict[str, Any] = new["parts"]
    names = dict.fromkeys([*known, *parts])
    together = {name: [*known.get(name, []), *([parts[name]] if name in parts else [])] for name in names}
    benchy = together.get("benchy") or []
    on = measured_on(options)
    return {
        "format": FORMAT,
        "service": options.service,
        "release": options.release,
        "workload_id": options.workload_id,
        "client": "controller" if options.client else "host",
        "workloads": options.gate,
        # Of llama-benchy's alone, as one report: what readers that know nothing else look for.
        "workload": {**(options.gate.get("benchy") or {}), "runs": sum(one["runs"] for one in benchy)},
        "report": as_one_report(benchy),
        "invocation": new["invocation"],
        "started": before.get("started") or new["started"],
        "finished": now(),
        "seconds": round((before.get("seconds") or 0) + time.monotonic() - options.began, 1),
        "gpu": {"name": on[part.GPU], "driver": on[part.DRIVER]} if on[part.GPU] is not None else None,
        "versions": on,
        "samples": joined(before.get("samples") or {}, new["samples"]),
        "parts": together,
        "faults": [*(before.get("faults") or []), *(one for part in parts.values() for one in part["faults"])],
    }


def measured_on(options: argparse.Namespace) -> part.Versions:
    """What the machine is."""
    entry = Ledger(options.service, options.state).entry(options.release) or {}
    image = (entry.get("release") or {}).get("image")
    return versions(image_id(image) if image else None)[0]


def as_one_report(repetitions: list[dict[str, Any]]) -> dict[str, Any] | None:
    """llama-benchy's reports of one matrix as one with all their runs, in its own form; None where one is missing."""
    reports = [one["report"] for one in repetitions]
    if not reports or any(report is None for report in reports):
        return None
    cells = [list(same) for same in zip(*(report["benchmarks"] for report in reports), strict=True)]
    return {**reports[0], "benchmarks": [_one_cell(same) for same in cells]}


def _one_cell(same: list[dict[str, Any]]) -> dict[str, Any]:
    merged = dict(same[0])
    for key, first in same[0].items():
        if isinstance(first, dict) and "values" in first:
            metrics = [one.get(key) for one in same]
            values = [value for metric in metrics if metric for value in metric["values"]]
            whole = None not in metrics and values
            figures = (
                {"mean": statistics.fmean(values), "std": statistics.pstdev(values), "values": values}
                if whole
                else None
            )
            merged[key] = figures
    return merged


def set_aside(path: Path) -> None:
    """Keep the result that is about to be replaced: history, and what later ones are held against."""
    old = read_json(path)
    if old is not None and old.get("finished"):
        aside = path.parent / "former" / f"{path.stem}.{str(old['finished']).replace(':', '')}.json"
        aside.parent.mkdir(exist_ok=True)
        write_json(aside, old)
