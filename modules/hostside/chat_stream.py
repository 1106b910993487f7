"""One chat completion, streamed, with everything of it that a check may need. Only the standard library."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Reply:
    """`pieces`: parts of the stream that carried something. `pause_s`: the longest between two. `error`: why none."""

    content: str = ""
    reasoning: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)
    pieces: int = 0
    pause_s: float = 0.0
    finish: str | None = None
    usage: dict[str, Any] | None = None
    error: str | None = None
    seconds: float = 0.0
    streamed: bool = False


def asked(url: str, body: dict[str, Any], key: str | None, limit_s: float) -> Reply:
    """Send it. An error of the server or of the connection is told in the reply, never raised."""
    reply, began = Reply(), time.monotonic()
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        data=json.dumps({**body, "stream": True, "stream_options": {"include_usage": True}}).encode(),
        headers={"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        # The limit is on each wait; a stream that goes on is bounded by its tokens.
        with opener.open(request, timeout=limit_s) as answer:
            last = None
            for line in answer:
                if not line.startswith(b"data:") or line.strip() in {b"data: [DONE]", b"data:[DONE]"}:
                    continue
                reply.streamed = True
                if _taken(reply, json.loads(line[5:])):
                    now = time.monotonic()
                    reply.pause_s = max(reply.pause_s, 0.0 if last is None else now - last)
                    last = now
    except urllib.error.HTTPError as error:
        reply.error = f"HTTP {error.code}: {error.read(300).decode('utf-8', errors='replace')}"
    except (OSError, ValueError) as error:
        reply.error = f"{type(error).__name__}: {error}"
    reply.seconds = time.monotonic() - began
    return reply


def _taken(reply: Reply, chunk: dict[str, Any]) -> bool:
    """Add a chunk; whether it carried something."""
    reply.usage = chunk.get("usage") or reply.usage
    choices = chunk.get("choices") or []
    if not choices:
        return False
    reply.finish = choices[0].get("finish_reason") or reply.finish
    delta = choices[0].get("delta") or {}
    content, reasoning = delta.get("content") or "", delta.get("reasoning_content") or delta.get("reasoning") or ""
    reply.content += content
    reply.reasoning += reasoning
    for call in delta.get("tool_calls") or []:
        _add_call(reply.calls, call)
    carried = bool(content or reasoning or delta.get("tool_calls"))
    reply.pieces += carried
    return carried


def _add_call(calls: list[dict[str, str]], call: dict[str, Any]) -> None:
    index, function = int(call.get("index") or 0), call.get("function") or {}
    while len(calls) <= index:
        calls.append({"name": "", "arguments": ""})
    calls[index]["name"] += function.get("name") or ""
    calls[index]["arguments"] += function.get("arguments") or ""
