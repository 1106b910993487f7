"""Faults on demand: a JSON file, read anew for each request, says which requests go wrong and how.

A list of objects, the first that matches counts: `host` and `method` (exact; left out: any), `path` (a regular
expression that is searched for), and what to do: `status` with `headers` and `body` · `drop: true` (close without an
answer) · `cut_after: N` (close after N bytes of the body) · `stall_after: N` (then send nothing more) · `flip_at: N`
(another byte at N of a file) · `length: N` (say this Content-Length) · `delay_s` (wait first). `times: N` ends a fault
after N requests.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .message import Request


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    drop: bool = False
    cut_after: int | None = None
    flip_at: int | None = None
    stall_after: int | None = None
    length: int | None = None
    delay_s: float = 0.0


class Faults:
    """The faults of one file. A file that is not there, or is half written, means none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._used: Counter[str] = Counter()
        self._lock = threading.Lock()

    def match(self, request: Request) -> Fault | None:
        """The fault that this request meets, counted against its `times`."""
        for number, rule in enumerate(self._rules()):
            if not _applies(rule, request):
                continue
            key = f"{number} {json.dumps(rule, sort_keys=True)}"
            with self._lock:
                if self._used[key] >= rule.get("times", float("inf")):
                    continue
                self._used[key] += 1
            known = {name: value for name, value in rule.items() if name in Fault.__dataclass_fields__}
            return Fault(**known)
        return None

    def _rules(self) -> list[dict[str, Any]]:
        try:
            rules = json.loads(self._path.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return []
        if not rules:
            self._used.clear()
        return rules if isinstance(rules, list) else []


def _applies(rule: Mapping[str, Any], request: Request) -> bool:
    exact = all(rule.get(name) in {None, getattr(request, name)} for name in ("host", "method"))
    return exact and re.search(str(rule.get("path", "")), request.path) is not None
