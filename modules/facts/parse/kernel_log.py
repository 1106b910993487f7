"""The kernel's log, by `journalctl -k` or `dmesg`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "kernel log"
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+),? ?(.*)")
_PID = re.compile(r"pid=(?:'?(\d+)'?|'?<unknown>'?)(?:, name=([^,]+))?(?:, )?")
_FIRMWARE = re.compile(r"(?:(\S+) kernel: )?(?:\[[\s\d.]+\] )?mlx5_core (\S+): firmware version: (\S+)")
_OOM = re.compile(r"Out of memory: Killed process (\d+) \(([^)]+)\)")
_REFUSED = re.compile(r"Operation not permitted|Permission denied|insufficient permissions|Hint: You are currently not")


@dataclass(frozen=True)
class Xid:
    """An error that the GPU's driver reports. `pid` and `process` are None where the line does not name them."""

    device: str
    code: int
    pid: int | None
    process: str | None
    message: str


@dataclass(frozen=True)
class Firmware:
    """A ConnectX function and the firmware that it runs. `host` only in journalctl's form."""

    host: str | None
    device: str
    version: str


@dataclass(frozen=True)
class KernelLog:
    """What was found. `gpu_memory_exhausted`: NVRM ran out, which on unified memory comes before a wedged host.

    `slot_power_warnings` also stand on healthy boots. `oom_kills`: pid and name.
    """

    lines: int
    xids: tuple[Xid, ...]
    firmware: tuple[Firmware, ...]
    oom_kills: tuple[tuple[int, str], ...]
    gpu_memory_exhausted: bool
    slot_power_warnings: int


def parse_kernel_log(text: str) -> KernelLog:
    """Both programs' forms. Without the right to read nothing was read, which is not `nothing happened`: an error."""
    lines = [line for line in lines_of(text) if line.strip()]
    for at, line in enumerate(lines, start=1):
        if _REFUSED.search(line) and "kernel:" not in line and "NVRM" not in line:
            raise ParseError(_PROGRAM, "nothing was read: it needs root", line=at, text=line)
    read = [line for line in lines if line.strip() != "-- No entries --"]
    return KernelLog(
        lines=len(read),
        xids=tuple(_xid(match) for line in read if (match := _XID.search(line))),
        firmware=tuple(Firmware(match[1], match[2], match[3]) for line in read if (match := _FIRMWARE.search(line))),
        oom_kills=tuple((int(match[1]), match[2]) for line in read if (match := _OOM.search(line))),
        gpu_memory_exhausted=any("NVRM" in line and "NV_ERR_NO_MEMORY" in line for line in read),
        slot_power_warnings=sum("Detected insufficient power on the PCIe slot" in line for line in read),
    )


def _xid(match: re.Match[str]) -> Xid:
    rest = match[3]
    named = _PID.match(rest)
    if named is None:
        return Xid(match[1], int(match[2]), None, None, rest)
    process = None if named[2] in {None, "<unknown>"} else named[2].strip()
    return Xid(match[1], int(match[2]), int(named[1]) if named[1] else None, process, rest[named.end() :])
