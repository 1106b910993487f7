"""The log of llama.cpp's `llama-server`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "llama-server log"
# minutes.seconds.milliseconds.microseconds since the start: it looks like an IPv4 address and is none
_STAMP = re.compile(r"(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) ([IWED]) ")
_DEVICE = re.compile(r"- (CUDA\d+)\s*: (.+?) \((\d+) MiB, (\d+) MiB free\)")
_MODEL = re.compile(r"load_model: loading model '([^']+)'")
_SLOT = re.compile(r"new slot, n_ctx = (\d+)")
_LISTENING = re.compile(r"server is listening on (\S+)")
_FAILED = re.compile(r"(?:error loading model|failed to load model|exiting due to model loading error|couldn't bind).*")


@dataclass(frozen=True)
class Device:
    """A GPU as llama.cpp sees it; memory in MiB."""

    name: str
    total_mib: int
    free_mib: int


@dataclass(frozen=True)
class LlamaServerLog:
    """`slots`: context length of each. `ready_seconds`: since the start. `native_fp4`: built with Blackwell's FP4."""

    devices: tuple[Device, ...]
    native_fp4: bool
    model: str | None
    slots: tuple[int, ...]
    listening: str | None
    ready_seconds: float | None
    failure: str | None

    @property
    def state(self) -> Literal["failed", "ready", "loading"]:
        """Ready when it listens."""
        if self.failure is not None:
            return "failed"
        return "ready" if self.listening is not None else "loading"


def parse_llama_server_log(text: str) -> LlamaServerLog:
    """Devices, model, slots and readiness; a text without one stamped line is an error."""
    devices: list[Device] = []
    slots: list[int] = []
    model = listening = failure = None
    ready: float | None = None
    stamped = native = False
    for line in lines_of(text):
        stamp = _STAMP.match(line)
        stamped = stamped or stamp is not None
        native = native or "BLACKWELL_NATIVE_FP4 = 1" in line
        if device := _DEVICE.search(line):
            devices.append(Device(device[2], int(device[3]), int(device[4])))
        elif loading := _MODEL.search(line):
            model = loading[1]
        elif slot := _SLOT.search(line):
            slots.append(int(slot[1]))
        elif listens := _LISTENING.search(line):
            listening = listens[1]
            ready = None if stamp is None else _seconds(stamp)
        elif failure is None and (failed := _FAILED.search(line)):
            failure = failed[0]
    if not stamped:
        raise ParseError(_PROGRAM, "not one line of llama-server", text=text)
    return LlamaServerLog(tuple(devices), native, model, tuple(slots), listening, ready, failure)


def _seconds(stamp: re.Match[str]) -> float:
    return round(int(stamp[1]) * 60 + int(stamp[2]) + int(stamp[3]) / 1000 + int(stamp[4]) / 1e6, 6)
