"""Become `docker run`, with those devices that this host has: a missing node would make docker refuse to start.

    start_container.py [--device PATH]... [--address A --interface-variable V... --hca-variable V...] -- docker run ...

For an engine that spans hosts: the interface that has this host's address, and the RoCE devices whose link is up, are
told by these variables; what their names are is another thing on each Spark. What the fabric has written wins.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.own_network import active_devices, interface_of
else:
    from own_network import active_devices, interface_of

FABRIC = Path("/etc/tinderbox/fabric.env")


def with_devices(command: list[str], devices: list[str]) -> list[str]:
    """Put `--device` for every present node right after `docker run`."""
    present = [word for device in devices if Path(device).exists() for word in ("--device", device)]
    return [*command[:2], *present, *command[2:]]


def with_network(command: list[str], options: argparse.Namespace, fabric: Path = FABRIC) -> list[str]:
    """Put what the engine must know of this host's network right after `docker run`."""
    if options.address is None:
        return command
    there = fabric.read_text(encoding="utf-8").splitlines() if fabric.exists() else []
    known = {line.partition("=")[0] for line in there}
    words = ["--env-file", str(fabric)] if there else []
    interface, devices = interface_of(options.address), active_devices()
    found = [(name, interface) for name in options.interface_variable]
    found += [(name, ",".join(devices)) for name in options.hca_variable]
    words += [word for name, value in found if value and name not in known for word in ("--env", f"{name}={value}")]
    return [*command[:2], *words, *command[2:]]


def parser() -> argparse.ArgumentParser:
    """Of what stands before the command."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--device", action="append", default=[])
    words.add_argument("--address", help="this host's, between the hosts of the service")
    words.add_argument("--interface-variable", action="append", default=[])
    words.add_argument("--hca-variable", action="append", default=[])
    return words


def main(arguments: list[str]) -> None:
    """Parse, and hand the process over to the container's client."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser().parse_args(arguments[:split])
    command = arguments[split + 1 :]
    if len(command) < 2:
        parser().error("no command after --")
    command = with_devices(with_network(command, options), options.device)
    os.execvp(command[0], command)  # noqa: S606, becoming the client is the point


if __name__ == "__main__":
    main(sys.argv[1:])
