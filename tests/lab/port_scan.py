"""Which TCP ports of a lab host another one can reach: tried there, one by one, by python3 over SSH."""

from __future__ import annotations

import re

from tests.lab.lab_driver import Lab

_PROGRAM = """\
import asyncio, json, sys

async def reach(address, port, turn, found):
    async with turn:
        for _ in range(2):
            try:
                _, writer = await asyncio.wait_for(asyncio.open_connection(address, port), 5)
            except (ConnectionRefusedError, OSError, asyncio.TimeoutError) as error:
                # Whoever refuses has answered; only a lost packet is worth a second try.
                if isinstance(error, ConnectionRefusedError):
                    return
                continue
            writer.close()
            found.append(port)
            return

async def scan(address):
    turn, found = asyncio.Semaphore(400), []
    await asyncio.gather(*(reach(address, port, turn, found) for port in range(1, 65536)))
    return sorted(found)

print(json.dumps({address: asyncio.run(scan(address)) for address in sys.argv[1:]}))
"""
_PATH = "/tmp/port_scan.py"


def addresses(lab: Lab, host: str) -> list[str]:
    """Every address of a host at which its neighbours reach it; an IPv6 one of the link alone with the zone `eth0`."""
    told = lab.ssh(host, "ip -json address show dev eth0").json
    found = []
    for entry in told[0]["addr_info"]:
        zone = "%eth0" if entry["scope"] == "link" and ":" in entry["local"] else ""
        found.append(f"{entry['local']}{zone}")
    return found


def open_ports(lab: Lab, neighbour: str, host: str) -> dict[str, list[int]]:
    """Address of the host → all ports from 1 to 65535 that answer when the neighbour asks."""
    lab.write(neighbour, _PATH, _PROGRAM)
    found = lab.ssh(neighbour, f"python3 {_PATH} {' '.join(addresses(lab, host))}", timeout_s=600).json
    return {str(address): list(ports) for address, ports in found.items()}


def listeners(lab: Lab, host: str) -> str:
    """Who listens, for the message of a test that has found too much."""
    return re.sub(r" +", " ", lab.ssh(host, "sudo ss -ltnp").stdout)
