"""The table that a bare `nvidia-smi` prints."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of, size

_PROGRAM = "nvidia-smi"
_VERSIONS = re.compile(r"\| NVIDIA-SMI (\S+)\s+Driver Version: (\S+)\s+CUDA Version: (\S+)\s*\|")
_NAME = re.compile(r"\|\s+(\d+)\s+(\S.*?)\s+(On|Off|N/A)\s+\|\s+([0-9A-F]{8}:\S+)\s.*\|")
_STATE = re.compile(
    r"\|\s*\S+\s+(?P<temperature>\d+|N/A)C?\s+(?P<pstate>P\d+|N/A)\s+(?P<power>\d+W|N/A)\s*/\s*(?P<cap>\d+W|N/A)\s*"
    r"\|\s*(?P<memory>\S.*?)\s*\|\s*(?P<utilization>\d+%|N/A)\s.*\|"
)
_PROCESS = re.compile(r"\|\s+(\d+)\s+\S+\s+\S+\s+(\d+)\s+([CGM+]+)\s+(\S.*?)\s+(\d+MiB|N/A)\s*\|")
_FORWARD = re.compile(r"Using CUDA (\S+) driver version (\S+) with kernel driver version (\S+?)\.?$")


@dataclass(frozen=True)
class TableProcess:
    """A process of the table. `name` may be cut: from the right, or from the left with leading dots."""

    gpu: int
    pid: int
    kind: str
    name: str
    memory_mib: int | None


@dataclass(frozen=True)
class TableGpu:
    """A GPU of the table; None where it says N/A or Not Supported. Power in W, temperature in °C."""

    index: int
    name: str
    persistence: bool
    bus: str
    temperature_c: int | None
    pstate: str | None
    power_w: int | None
    utilization_pct: int | None
    memory: str | None


@dataclass(frozen=True)
class Table:
    """`cuda`: what this process would get: newer than the driver's own in a container with forward compatibility."""

    smi: str
    driver: str
    cuda: str
    forward_compatibility: str | None
    gpus: tuple[TableGpu, ...]
    processes: tuple[TableProcess, ...]


def parse_table(text: str) -> Table:
    """The table, wherever it starts: NGC containers print a banner first."""
    lines = lines_of(text)
    versions = next((match for line in lines if (match := _VERSIONS.search(line))), None)
    if versions is None:
        raise ParseError(_PROGRAM, "no line with the driver's version", text=text)
    if not any("Processes:" in line for line in lines) or not _closed(lines):
        raise ParseError(_PROGRAM, "the table is cut off before the end of its processes")
    gpus = tuple(_gpu(name, lines[at], at + 1) for at, line in enumerate(lines, 1) if (name := _NAME.fullmatch(line)))
    if not gpus:
        raise ParseError(_PROGRAM, "no GPU in the table")
    forward = next((match[1] for line in lines if (match := _FORWARD.search(line))), None)
    processes = tuple(_process(match, at) for at, line in enumerate(lines, 1) if (match := _PROCESS.fullmatch(line)))
    if not processes and not any("No running processes found" in line for line in lines):
        raise ParseError(_PROGRAM, "neither processes nor `No running processes found`")
    return Table(versions[1], versions[2], versions[3], forward, gpus, processes)


def _closed(lines: list[str]) -> bool:
    last = next((line for line in reversed(lines) if line.strip()), "")
    return re.fullmatch(r"\+-+\+", last.strip()) is not None


def _gpu(name: re.Match[str], line: str, at: int) -> TableGpu:
    state = _STATE.fullmatch(line)
    if state is None:
        raise ParseError(_PROGRAM, "expected temperature, power and memory", line=at, text=line)

    def figure(key: str) -> int | None:
        value = state[key]
        return None if value == "N/A" else int(value.rstrip("W%"))

    return TableGpu(
        index=int(name[1]),
        name=name[2],
        persistence=name[3] == "On",
        bus=name[4],
        temperature_c=figure("temperature"),
        pstate=None if state["pstate"] == "N/A" else state["pstate"],
        power_w=figure("power"),
        utilization_pct=figure("utilization"),
        memory=None if state["memory"] in {"Not Supported", "N/A"} else state["memory"],
    )


def _process(match: re.Match[str], at: int) -> TableProcess:
    memory = None if match[5] == "N/A" else size(_PROGRAM, match[5], line=at) // 2**20
    return TableProcess(int(match[1]), int(match[2]), match[3], match[4], memory)
