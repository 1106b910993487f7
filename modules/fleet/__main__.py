"""`python -m modules.fleet`: what each host of the fleet file is to serve, before any is contacted. Changes nothing."""

from __future__ import annotations

import sys

from modules.catalog import load_catalog
from modules.fleet import FleetError, load_fleet
from modules.fleet.lock import read_lock
from modules.fleet.problem import shown


def main() -> int:
    """0; 1 where the fleet file is refused, with what is wrong."""
    try:
        fleet = load_fleet()
    except FleetError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    # A file that is refused shall not wait for what reckons with memory.
    from modules.fleet.shown import plan_lines

    lines = [f"fleet {fleet.name}: {shown(fleet.path)}", *plan_lines(fleet, load_catalog(), read_lock(fleet.path))]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    sys.stderr.write("".join(f"{remark.told(shown(fleet.path))}\n" for remark in fleet.remarks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
