"""What sites take and give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """One request. `path`: decoded, without the query; `query`: the last value of every key."""

    host: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """One response. `file` stands for a body that is sent from disk, and may be asked for in ranges."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    file: Path | None = None


Site = Callable[[Request], Response]


def text(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """A plain text answer."""
    return Response(status, {"Content-Type": "text/plain; charset=utf-8", **(headers or {})}, message.encode())


def as_json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(value).encode())


def not_found(request: Request) -> Response:
    """Status 404, with what was asked for."""
    return text(404, f"{request.host} has no {request.path}\n")
