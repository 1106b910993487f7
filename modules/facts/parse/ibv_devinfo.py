"""`ibv_devinfo`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import integer, lines_of

_PROGRAM = "ibv_devinfo"
_LINE = re.compile(r"\s*(\w+):\s+(\S+)(?:\s+\(\d+\))?\s*")


@dataclass(frozen=True)
class HcaPort:
    """`state` without its prefix: ACTIVE, DOWN. MTU in bytes."""

    number: int
    state: str
    active_mtu: int
    link_layer: str


@dataclass(frozen=True)
class Hca:
    """A host channel adapter. A Spark's one ConnectX-7 shows as four: each port has a twin on the second PCIe link."""

    name: str
    firmware: str
    board: str
    ports: tuple[HcaPort, ...]


def parse_ibv_devinfo(text: str) -> tuple[Hca, ...]:
    """Every adapter; none when it says so."""
    if "No IB devices found" in text:
        return ()
    adapters: list[dict[str, str]] = []
    ports: list[list[dict[str, str]]] = []
    for at, line in enumerate(lines_of(text), start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ParseError(_PROGRAM, "expected `name: value`", line=at, text=line)
        if match[1] == "hca_id":
            adapters.append({})
            ports.append([])
        elif not adapters:
            raise ParseError(_PROGRAM, "a value before the first adapter", line=at, text=line)
        elif match[1] == "port":
            ports[-1].append({})
        (ports[-1][-1] if ports[-1] else adapters[-1])[match[1]] = match[2]
    if not adapters:
        raise ParseError(_PROGRAM, "no adapter", text=text)
    return tuple(_hca(adapter, found) for adapter, found in zip(adapters, ports, strict=True))


def _hca(adapter: dict[str, str], ports: list[dict[str, str]]) -> Hca:
    try:
        if integer(_PROGRAM, adapter["phys_port_cnt"]) != len(ports):
            raise ParseError(_PROGRAM, f"{adapter['hca_id']}: its ports are cut off")
        return Hca(adapter["hca_id"], adapter["fw_ver"], adapter["board_id"], tuple(_port(port) for port in ports))
    except KeyError as missing:
        raise ParseError(_PROGRAM, f"{adapter.get('hca_id')}: no {missing.args[0]}") from missing


def _port(port: dict[str, str]) -> HcaPort:
    return HcaPort(
        number=integer(_PROGRAM, port["port"]),
        state=port["state"].removeprefix("PORT_"),
        active_mtu=integer(_PROGRAM, port["active_mtu"]),
        link_layer=port["link_layer"],
    )
