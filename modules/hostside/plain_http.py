"""One question by HTTP, without the libraries for it: they take longer to import than most hosts take to answer."""

from __future__ import annotations

import socket
import time

_MOST_BYTES = 8 * 1024**2


def get(where: tuple[str, int] | str, path: str, timeout_s: float, key: str | None = None) -> str | None:
    """The body of what comes back with status 200; None for all else.

    `where`: address and port, or the path of a socket. `timeout_s`: for all of it. `key`: an API key.
    """
    unix = isinstance(where, str)
    family = socket.AF_UNIX if unix else socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    ends = time.monotonic() + timeout_s
    lines = [f"GET {path} HTTP/1.0", "Host: localhost", "Connection: close"]
    lines += [] if key is None else [f"Authorization: Bearer {key}"]
    try:
        with socket.socket(family, socket.SOCK_STREAM) as asking:
            asking.settimeout(timeout_s)
            asking.connect(where)
            asking.sendall("\r\n".join([*lines, "", ""]).encode())
            answer = b""
            while len(answer) < _MOST_BYTES:
                asking.settimeout(max(0.001, ends - time.monotonic()))
                piece = asking.recv(1 << 16)
                if not piece:
                    break
                answer += piece
    except (OSError, ValueError):
        return None
    return body_of(answer)


def body_of(answer: bytes) -> str | None:
    """The body of an answer with status 200."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *fields = head.decode("latin-1").split("\r\n")
    if first.split(" ")[1:2] != ["200"]:
        return None
    chunked = any(field.lower().replace(" ", "") == "transfer-encoding:chunked" for field in fields)
    return (_joined(body) if chunked else body).decode("utf-8", errors="replace")


def _joined(body: bytes) -> bytes:
    """Some servers answer in chunks also to who does not know of them."""
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        count = int(size.split(b";")[0] or b"0", 16)
        if not count:
            break
        whole, body = whole + rest[:count], rest[count + 2 :]
    return whole
