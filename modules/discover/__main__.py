"""`python -m modules.discover`: find Sparks on the local network, and write them down as a fleet file."""

from __future__ import annotations

from modules.converge.early import in_order

# isort: split
import os
import socket
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from modules.bootstrap.own_keys import own_keys
from modules.bootstrap.refusal import RefusedError
from modules.converge.program import start
from modules.discover.announced import Announced, announced
from modules.discover.links import Neighbour, asked, links, neighbours
from modules.discover.listen import everybody, listen
from modules.discover.look import look
from modules.discover.merge import Machine, Seen, merged
from modules.discover.render import fleet_file, fleet_name, rows, wanted
from modules.fleet import FleetError, load_fleet
from modules.spec.fleet import Ssh

_NOTHING = 1
_AT_ONCE = 32
console = Console(stderr=True, highlight=False, soft_wrap=True)


@in_order()
def main(
    *,
    out: Annotated[Path | None, typer.Option(help="the fleet file to write; never over one that is there")] = None,
    user: Annotated[str, typer.Option(help="who is let in on the Sparks")] = "nvidia",
    key: Annotated[
        Path | None, typer.Option(help="a private key; without it: your agent's and your usual ones")
    ] = None,
    interface: Annotated[list[str] | None, typer.Option(help="look there alone; may repeat")] = None,
    seconds: Annotated[float, typer.Option(min=0.5, max=60, help="how long answers are waited for")] = 3.0,
) -> None:
    """Find machines with sshd on the links of this machine, and tell which are Sparks. Changes nothing on any of them.

    Exit status: 0 at least one Spark, or what looks like one, was found; 1 none, or the fleet file is there already;
    130 interrupted.
    """
    found = _found(interface or [], user, key, seconds)
    chosen, others = wanted(found)
    if chosen:
        _show("Sparks, and what looks like them", chosen)
    if others:
        _show("others with sshd", others)
    closed = [one.name for one in chosen if one.told is None]
    if closed:
        _say(
            f"{', '.join(closed)}: unknown, since user {user} is not let in by a key: see make bootstrap below",
            "yellow",
        )
    if not chosen:
        _say(
            "no Spark was found: is it on, and on this network? VLANs and Wi-Fi that keeps guests apart hide it;",
            "red",
        )
        _say("with its address, as your router tells it, copy and change inventory/example.yaml", "red")
        raise typer.Exit(_NOTHING)
    if out is None:
        _say("to write them down as a fleet file: make discover OUT=inventory/mine.yaml", "cyan")
        return
    raise typer.Exit(_written(out, chosen, user, len(others)))


def _found(interface: Sequence[str], user: str, key: Path | None, seconds: float) -> list[Machine]:
    on = links(asked("addr"), interface)
    if not on:
        _say(f"no interface to look at: {', '.join(interface) or 'none is up'}; see `ip -br addr`", "red")
        raise typer.Exit(_NOTHING)
    _say(f"asking on {', '.join(link.name for link in on)}", "dim")
    near = everybody(on, min(seconds, 2.0))
    # What has answered stands in this machine's own table by now, with its network card's address.
    near += neighbours(asked("neigh"), on)
    said = announced(listen(on, {one.address for one in near}, seconds))
    near += neighbours(asked("neigh"), on)
    try:
        keys = own_keys(Ssh(user=user, key=str(key.expanduser().absolute()) if key else None))
    except RefusedError as error:
        _say(str(error), "red")
        raise typer.Exit(_NOTHING) from error
    own = {address for link in on for address in (*link.ipv4, *link.ipv6)}
    spots = [spot for spot in places(near, said) if spot.address not in own]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        looked = pool.map(lambda one: look(one.address, one.port, user, keys.private if keys else ()), spots)
        seen = [replace(spot, key=shown, told=told) for spot, (shown, told) in zip(spots, looked, strict=True)]
        return list(pool.map(_by_name, merged(seen)))


def _by_name(machine: Machine) -> Machine:
    """With its name for an address, where this machine knows that name: addresses change."""
    for name in machine.names:
        with suppress(OSError):
            if {str(one[4][0]) for one in socket.getaddrinfo(name, machine.port)} & set(machine.addresses):
                return replace(machine, addresses=(name, *machine.addresses))
    return machine


def places(near: Sequence[Neighbour], said: dict[str, Announced]) -> list[Seen]:
    """Every address once, with all that is known of it."""
    cards = {one.address: one.mac for one in near if one.mac}
    spots = {one.address: Seen(one.address, mac=cards.get(one.address, "")) for one in near}
    for machine in said.values():
        for address in machine.addresses:
            spot = spots.get(address, Seen(address))
            spots[address] = replace(
                spot, port=machine.port, names=(*spot.names, machine.name), model=machine.model or spot.model
            )
    return list(spots.values())


def _show(title: str, machines: Sequence[Machine]) -> None:
    table = Table("name", "model", "address", "DGX OS", "driver", "host key", title=title, title_justify="left")
    for row in rows(machines):
        table.add_row(*map(Text, row))
    console.print(table)


def _written(out: Path, machines: Sequence[Machine], user: str, others: int) -> int:
    if out.exists():
        _say(f"{out} is there, and is left as it is; {_missing(out, machines)}", "red")
        return _NOTHING
    text = fleet_file(
        machines, name=fleet_name(out.stem), user=user, path=str(out), day=time.strftime("%Y-%m-%d"), others=others
    )
    try:
        with tempfile.NamedTemporaryFile("w", dir=out.parent, prefix=f".{out.name}-", delete=False) as fresh:
            fresh.write(text)
        try:
            Path(fresh.name).chmod(0o644)
            # Unlike a rename this fails where another has made the file meanwhile.
            os.link(fresh.name, out)
        finally:
            Path(fresh.name).unlink()
    except OSError as error:
        _say(f"{out}: {error.strerror}; name a file that you may write", "red")
        return _NOTHING
    _say(f"{out} is written; see and change it, then:", "green")
    _say(f"  make bootstrap FLEET={out}    # where a host still wants a password", "cyan")
    _say(f"  make converge FLEET={out}", "cyan")
    return 0


def _missing(out: Path, machines: Sequence[Machine]) -> str:
    try:
        there = {host.address for host in load_fleet(out).hosts.values()}
    except FleetError:
        return "name another file"
    new = [one for one in machines if not there & {*one.addresses, *one.names}]
    if not new:
        return "every Spark that was found is in it"
    lines = "".join(f"\n  {one.name}: {{address: '{one.addresses[0]}'}}" for one in new)
    return f"what was found and is not in it, for its hosts:{lines}"


def _say(text: str, style: str) -> None:
    console.print(text, style=style, markup=False)


if __name__ == "__main__":
    start(main)
