"""What is known of a service's gate, as one JSON object: the release in force, its measurement, what it is held to.

Nothing here changes anything. `--evidence` prints the series and the engine's log in their place, for explaining.
"""

from __future__ import annotations

import argparse
import calendar
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.drain import Door
    from modules.hostside.ledger import STATE, Ledger
    from modules.hostside.masking import masked_lines
    from modules.hostside.release_story import was_good
    from modules.hostside.service_unit import journal, unit_name, unit_state
    from modules.hostside.versions import image_id, versions
else:
    from atomic import read_json
    from drain import Door
    from ledger import STATE, Ledger
    from masking import masked_lines
    from release_story import was_good
    from service_unit import journal, unit_name, unit_state
    from versions import image_id, versions

# Of the log: its beginning names the backends, its end tells what happened last.
LOG_LINES = 600
_FORM = "%Y-%m-%dT%H:%M:%SZ"


def summary(samples: dict[str, list[float | None]]) -> dict[str, dict[str, float]]:
    """Least, middle and greatest of each series; those of which nothing could be read are left out."""
    told = {field: [value for value in values if value is not None] for field, values in samples.items()}
    return {
        field: {"min": min(values), "median": statistics.median(values), "max": max(values)}
        for field, values in told.items()
        if values
    }


def age_s(finished: str) -> float:
    """Seconds since then."""
    return time.time() - calendar.timegm(time.strptime(finished, _FORM))


def result(folder: Path, release: str | None) -> dict[str, Any] | None:
    """The release's measurement, its long series summed up."""
    stored: dict[str, Any] | None = read_json(folder / f"{release}.json") if release else None
    if stored is None or not stored.get("finished"):
        return None
    return stored | {"samples": summary(stored.get("samples") or {}), "age_s": age_s(stored["finished"])}


def is_good(stored: dict[str, Any] | None) -> bool:
    """Whether it was judged, and did not fail."""
    return bool(stored) and ((stored or {}).get("judgement") or {}).get("verdict") in {"PASS", "WARN"}


def reference(folder: Path, ledger: Ledger, current: str | None) -> dict[str, Any] | None:
    """What the release in force is held to: the newest good measurement of another release, else of its own past."""
    mine = read_json(folder / f"{current}.json") if current else None
    wanted = (mine or {}).get("workload_id")
    before = str((mine or {}).get("finished") or "9")
    found = [read_json(path) for path in (*folder.glob("*.json"), *folder.glob("former/*.json"))]
    good = [one for one in found if one and is_good(one) and str(one.get("finished")) < before]
    if wanted is not None:
        good = [one for one in good if one.get("workload_id") == wanted]
    others = [one for one in good if one.get("release") != current and was_good(ledger.entry(str(one.get("release"))))]
    own = [one for one in good if one.get("release") == current]
    newest = sorted(others or own, key=lambda one: str(one["finished"]))
    return newest[-1] | {"samples": {}} if newest else None


def evidence(folder: Path, release: str | None, service: str) -> dict[str, Any]:
    """Series, and the log of the start that was measured."""
    stored: dict[str, Any] = (read_json(folder / f"{release}.json") if release else None) or {}
    lines = journal(unit_name(service), str(stored.get("invocation") or "") or None, lines=None)
    if len(lines) > 2 * LOG_LINES:
        lines = [*lines[:LOG_LINES], *lines[-LOG_LINES:]]
    return {"samples": stored.get("samples") or {}, "log": list(masked_lines(lines))}


def state(service: str, root: Path = STATE) -> dict[str, Any]:
    """The whole answer."""
    ledger, folder = Ledger(service, root), root / "gates" / service
    current = ledger.linked("current")
    entry: dict[str, Any] = (ledger.entry(current) or {}) if current else {}
    image = (entry.get("release") or {}).get("image")
    return {
        "current": current,
        "last_good": ledger.linked("last-good"),
        "has_gateway": Door(service).has_gateway,
        "closed": Door(service).is_closed,
        "commit": (entry.get("release") or {}).get("commit"),
        "unit": unit_state(unit_name(service)),
        "versions": versions(image_id(image) if image else None)[0],
        "proved_on": entry.get("proved_on"),
        "datasets": sorted(path.stem for path in (root / "datasets").glob("*.json")),
        "result": result(folder, current),
        "reference": reference(folder, ledger, current),
    }


def main() -> int:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service")
    parser.add_argument("--evidence", action="store_true")
    options = parser.parse_args()
    if options.evidence:
        release = Ledger(options.service).linked("current")
        answer = evidence(STATE / "gates" / options.service, release, options.service)
    else:
        answer = state(options.service)
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
