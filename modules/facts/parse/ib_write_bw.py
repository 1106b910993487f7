"""perftest's `ib_write_bw`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import integer, lines_of, number

_PROGRAM = "ib_write_bw"
_HEADER = re.compile(r"#bytes\s+#iterations\s+BW peak\[(\S+)\]\s+BW average\[(\S+)\]\s+MsgRate\[Mpps\]")
_FIELD = re.compile(r"(Device|Link type|GID index|Mtu)\s+: (\S+)")
# perftest's MB is 2^20 bytes, its Gb 10^9 bits.
_GBPS = {"MB/sec": 2**20 * 8 / 1e9, "MiB/sec": 2**20 * 8 / 1e9, "Gb/sec": 1.0}
_FAILURES = re.compile(r"Couldn't connect|Unable to|Failed to|Completion with error|IB device .* not found")


@dataclass(frozen=True)
class Bandwidth:
    """One message size in bytes; bandwidths in Gb/s whatever the output's unit; rate in million messages/s."""

    size: int
    iterations: int
    peak_gbps: float
    average_gbps: float
    rate_mpps: float


@dataclass(frozen=True)
class IbWriteBw:
    """`gid_index` tells RoCE v2 over IPv4 (3 on a Spark) from others."""

    device: str
    link_type: str
    gid_index: int
    rows: tuple[Bandwidth, ...]


def parse_ib_write_bw(text: str) -> IbWriteBw:
    """The client's output."""
    fields: dict[str, str] = {}
    rows: list[Bandwidth] = []
    factor: float | None = None
    for at, line in enumerate(lines_of(text), start=1):
        if _FAILURES.search(line):
            raise ParseError(_PROGRAM, "it failed", line=at, text=line)
        fields |= {match[1]: match[2] for match in _FIELD.finditer(line)}
        if header := _HEADER.search(line):
            if header[1] != header[2] or header[1] not in _GBPS:
                raise ParseError(_PROGRAM, "an unknown unit", line=at, text=line)
            factor = _GBPS[header[1]]
        elif factor is not None and line.split() and not line.strip().startswith("---"):
            rows.append(_row(line, factor, at))
    if not rows or not {"Device", "Link type", "GID index"} <= set(fields):
        raise ParseError(_PROGRAM, "no row of measurements", text=text)
    return IbWriteBw(fields["Device"], fields["Link type"], integer(_PROGRAM, fields["GID index"]), tuple(rows))


def _row(line: str, factor: float, at: int) -> Bandwidth:
    words = line.split()
    if len(words) != 5:
        raise ParseError(_PROGRAM, "expected 5 columns", line=at, text=line)
    peak, average, rate = (number(_PROGRAM, word, line=at) for word in words[2:])
    return Bandwidth(
        size=integer(_PROGRAM, words[0], line=at),
        iterations=integer(_PROGRAM, words[1], line=at),
        peak_gbps=round(peak * factor, 3),
        average_gbps=round(average * factor, 3),
        rate_mpps=rate,
    )
