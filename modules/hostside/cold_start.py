"""The workload `cold_start`: what the running start took, from the unit's launch to its being ready.

Nothing is started for it. The engine's log, by its times and by what the engine itself says, tells what was spent on
weights, on the KV cache and on graphs. Whether the weights came from the disk or from memory is not known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.service_unit import run
else:
    from service_unit import run

Line = tuple[float, str]
"""Time (s since the epoch), text."""

_STAMPED = re.compile(r"(\d+\.\d+) \S+ [^:]*: (.*)")
# vLLM, SGLang, llama.cpp. The engine's own seconds where it gives them (the first group).
WEIGHTS_BEGIN = re.compile(r"Starting to load model|Load weight begin|load_model: loading model|loading model tensors")
WEIGHTS = re.compile(
    r"Loading weights took (\d+(?:\.\d+)?) seconds|Load weight end\.?(?: elapsed=(\d+(?:\.\d+)?) ?s)?"
    r"|model buffer size|Model loading took"
)
KV = re.compile(r"KV cache size|KV Cache is allocated|Available KV cache memory|KV self size|KV buffer size")
GRAPHS_BEGIN = re.compile(r"Capturing CUDA graphs?|Capture cuda graph begin", re.IGNORECASE)
GRAPHS = re.compile(
    r"Graph capturing finished in (\d+(?:\.\d+)?) sec"
    r"|Capture cuda graph end\. Time elapsed: (\d+(?:\.\d+)?) ?s",
    re.IGNORECASE,
)


def stamped(text: str) -> list[Line]:
    """The lines of `journalctl --output=short-unix`."""
    found = (_STAMPED.match(line) for line in text.splitlines())
    return [(float(match[1]), match[2]) for match in found if match]


def _last(lines: list[Line], pattern: re.Pattern[str]) -> tuple[float, float | None] | None:
    """Time of the last line that matches, and the seconds that it tells."""
    found = [(at, pattern.search(text)) for at, text in lines]
    known = [(at, match) for at, match in found if match]
    if not known:
        return None
    seconds = [float(group) for _, match in known for group in match.groups() if group is not None]
    return known[-1][0], (sum(seconds) if seconds else None)


def _first(lines: list[Line], pattern: re.Pattern[str]) -> float | None:
    return next((at for at, text in lines if pattern.search(text)), None)


def split(lines: list[Line], launched: float, ready: float) -> dict[str, float | None]:
    """Seconds in all, and of each part that the log shows; None for what it does not."""
    weights, kv, graphs = _last(lines, WEIGHTS), _last(lines, KV), _last(lines, GRAPHS)
    begun, capturing = _first(lines, WEIGHTS_BEGIN), _first(lines, GRAPHS_BEGIN)
    weights_s = kv_s = graphs_s = None
    if weights is not None:
        weights_s = weights[1] if weights[1] is not None else weights[0] - (begun if begun is not None else launched)
    if kv is not None and weights is not None:
        kv_s = max(0.0, kv[0] - weights[0])
    if graphs is not None:
        graphs_s = graphs[1] if graphs[1] is not None else None
        if graphs_s is None and capturing is not None:
            graphs_s = graphs[0] - capturing
    parts = {"weights_loading": weights_s, "kv_cache": kv_s, "graph_capture": graphs_s}
    known = sum(value for value in parts.values() if value is not None)
    return {"launch_to_ready": ready - launched, **parts, "rest": max(0.0, ready - launched - known)}


def run_cold_start(unit: str, invocation: str) -> dict[str, Any]:
    """What is kept of it."""
    shown = run("systemctl", "show", "--timestamp=unix", "--property=InactiveExitTimestamp,ActiveEnterTimestamp", unit)
    times = dict(line.split("=", 1) for line in (shown or "").splitlines() if "=" in line)
    # Whole seconds; the journal's first and last line of the start would be no better for what takes minutes.
    launched, ready = (_unix(times.get(name)) for name in ("InactiveExitTimestamp", "ActiveEnterTimestamp"))
    log = run("journalctl", "--quiet", "--no-pager", "--output=short-unix", f"--unit={unit}",
              f"_SYSTEMD_INVOCATION_ID={invocation}")  # fmt: skip
    if launched is None or ready is None:
        return {"seconds": {}, "requests": 0, "faults": []}
    return {"seconds": split(stamped(log or ""), launched, ready), "requests": 0, "faults": []}


def _unix(text: str | None) -> float | None:
    found = re.fullmatch(r"@(\d+(?:\.\d+)?)", text or "")
    return float(found[1]) if found else None
