"""Share what was measured, and reproduce what another has shared.

    python -m modules.reporting.share write [--service HOST/SERVICE]
    python -m modules.reporting.share read FILE --name NAME [--onto FLEET_FILE]

`write` prints a block for every service that has figures, or for one. `read` writes `NAME.yaml` beside the fleet file
whose hosts it is to run on, and `NAME.baseline.yaml` with the block's figures.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import yaml

from modules.catalog import load_catalog
from modules.fleet import FleetError, load_fleet
from modules.reporting.baselines import baseline_path, baselines_text
from modules.reporting.share import ShareError, baseline_of, fleet_text, read_block
from modules.reporting.share.write import share_text


def _read(block: Path, name: str, onto: Path | None) -> int:
    share = read_block(sys.stdin.read() if str(block) == "-" else block.read_text(encoding="utf-8"))
    base = onto if onto is not None else load_fleet().path
    fleet = base.with_name(f"{name}.yaml")
    written = {
        fleet: fleet_text(share, load_catalog(), yaml.safe_load(base.read_text(encoding="utf-8")), name),
        baseline_path(fleet): baselines_text({name: baseline_of(share)}),
    }
    for path in written:
        if path.exists():
            raise ShareError(f"{os.path.relpath(path)} is there already: choose another --name, or move it away")
    hosts = _checked(fleet, written)
    sys.stdout.write(
        f"{os.path.relpath(fleet)}: {hosts} host(s); {os.path.relpath(baseline_path(fleet))}: its figures\n"
    )
    sys.stdout.write(f"try it: make converge FLEET={os.path.relpath(fleet)}\n")
    for key in share.left_out:
        sys.stdout.write(f"the block leaves out a private value that you may need: {key}\n")
    return 0


def _checked(fleet: Path, written: dict[Path, str]) -> int:
    """Write the files and read the fleet; how many hosts it has. Nothing stays of what is no fleet."""
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    try:
        return len(load_fleet(fleet).hosts)
    except FleetError:
        for path in written:
            path.unlink()
        raise


def main(arguments: list[str]) -> int:
    """0 when it is done."""
    parser = argparse.ArgumentParser(
        prog="python -m modules.reporting.share",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="print blocks of what was measured")
    write.add_argument("--service", help="HOST/SERVICE; without it all")
    read = commands.add_parser("read", help="make a fleet file and a baseline of a block")
    read.add_argument("block", type=Path, help="file with the block in it, or - for standard input")
    read.add_argument("--name", required=True, help="of the new fleet, its service and the baseline")
    read.add_argument("--onto", type=Path, help="fleet file whose hosts are to run it; without it the usual one")
    options = parser.parse_args(arguments)
    try:
        if options.command == "write":
            sys.stdout.write(share_text(options.service))
            return 0
        return _read(options.block, options.name, options.onto)
    except (ShareError, FleetError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
