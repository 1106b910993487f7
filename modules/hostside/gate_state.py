"""What is known of a service's gate, as one JSON object: the release in force, and what was measured of it.

Nothing here changes anything.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
    from modules.hostside.ledger import STATE, Ledger
    from modules.hostside.service_unit import unit_name, unit_state
else:
    from atomic import read_json
    from ledger import STATE, Ledger
    from service_unit import unit_name, unit_state


def summary(samples: dict[str, list[float | None]]) -> dict[str, dict[str, float]]:
    """Least, middle and greatest of each of the GPU's samples; fields that the GPU does not tell are left out."""
    told = {field: [value for value in values if value is not None] for field, values in samples.items()}
    return {
        field: {"min": min(values), "median": statistics.median(values), "max": max(values)}
        for field, values in told.items()
        if values
    }


def result(service: str, release: str | None) -> dict[str, Any] | None:
    """The release's measurement, its long series summed up."""
    stored: dict[str, Any] | None = read_json(STATE / "gates" / service / f"{release}.json") if release else None
    return stored | {"samples": summary(stored.get("samples") or {})} if stored else None


def main() -> int:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service")
    service = parser.parse_args().service
    ledger = Ledger(service)
    current = ledger.linked("current")
    answer = {
        "current": current,
        "last_good": ledger.linked("last-good"),
        "commit": ((ledger.entry(current) or {}).get("release") or {}).get("commit") if current else None,
        "unit": unit_state(unit_name(service)),
        "result": result(service, current),
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
