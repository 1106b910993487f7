"""What `NCCL_DEBUG=INFO` says of the transport: the real sign that a pair talks RDMA."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "NCCL"
_LINE = re.compile(r"(\S+?):(\d+):\d+ \[\d+\] NCCL INFO NET/(IB|Socket)\s*: Using (.*)")
_DEVICE = re.compile(r"\[\d+\]\s?([^\s:;\[]+):(\d+)/(\w+)")
_OUT_OF_BAND = re.compile(r"OOB (\S+?):([0-9a-fA-F.:]+)<")
_SOCKET = re.compile(r"\[\d+\]\s?([^\s:;\[]+):([0-9a-fA-F.:]+)<")


@dataclass(frozen=True)
class Transport:
    """What one rank uses. `devices`: HCAs with their port (`rocep1s0f1:1`), or interfaces for sockets."""

    host: str
    pid: int
    kind: str
    devices: tuple[str, ...]
    out_of_band: str | None

    @property
    def rdma(self) -> bool:
        """False: NCCL fell back to sockets, at a fraction of the speed."""
        return self.kind == "IB"


def parse_nccl_info(text: str) -> tuple[Transport, ...]:
    """One entry a rank, in the order of the log; the hosts of a pair may use different ports."""
    found = []
    for at, line in enumerate(lines_of(text), start=1):
        match = _LINE.search(line)
        if match is None:
            continue
        if match[3] == "IB":
            devices = tuple(f"{device[1]}:{device[2]}" for device in _DEVICE.finditer(match[4]))
        else:
            devices = tuple(device[1] for device in _SOCKET.finditer(match[4]))
        if not devices:
            raise ParseError(_PROGRAM, "a transport without a device", line=at, text=line)
        out_of_band = _OUT_OF_BAND.search(match[4])
        found.append(Transport(match[1], int(match[2]), match[3], devices, out_of_band and out_of_band[1]))
    if not found:
        raise ParseError(_PROGRAM, "no NET/IB or NET/Socket line: was NCCL_DEBUG=INFO set?", text=text)
    return tuple(found)
