"""Become `docker run`, with those devices that this host has: a missing node would make docker refuse to start.

Usage: start_container.py [--device PATH]... -- docker run ...
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def with_devices(command: list[str], devices: list[str]) -> list[str]:
    """Put `--device` for every present node right after `docker run`."""
    present = [word for device in devices if Path(device).exists() for word in ("--device", device)]
    return [*command[:2], *present, *command[2:]]


def main(arguments: list[str]) -> None:
    """Parse, and hand the process over to the container's client."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", action="append", default=[])
    options = parser.parse_args(arguments[:split])
    command = arguments[split + 1 :]
    if len(command) < 2:
        parser.error("no command after --")
    command = with_devices(command, options.device)
    os.execvp(command[0], command)  # noqa: S606, becoming the client is the point


if __name__ == "__main__":
    main(sys.argv[1:])
