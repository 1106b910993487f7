"""A fast server of OpenAI's streaming chat API that makes up its tokens, and counts what it really sends.

`python -m benchmarks.token_server --rate 4` sends each stream four tokens a second; without `--rate` as fast as the
client takes them. It prints its port, and tells at `/sent` of every batch of streams (from the first that begins to the
last that ends) what was sent, and how fast: tokens after each stream's first, over the time from the first token of all
to the last, which is llama-benchy's definition of a total. A token counts when the kernel has taken it.

Standard library alone, one process: sockets are written to directly, and a token's bytes are made once.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import time
from dataclasses import dataclass, field
from typing import Any

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"
_ID = "chatcmpl-0123456789abcdef0123456789abcdef"
# Within this much time tokens are due together: a timer each would be a load of its own.
_TICK_S = 0.002


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


def _event(**choice: Any) -> bytes:
    """As vLLM sends it for `return_token_ids`."""
    document = {"id": _ID, "object": "chat.completion.chunk", "created": 1796013907, "model": "made-up"}
    document["choices"] = [{"index": 0, "logprobs": None, "finish_reason": None, **choice}]
    return _chunk(b"data: " + json.dumps(document).encode() + b"\n\n")


_FIRST = _event(delta={"role": "assistant", "content": ""})
_TOKEN = _event(delta={"content": " spark"}, token_ids=[4711])


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _tail(prompt: int, completion: int) -> bytes:
    usage = {"id": _ID, "object": "chat.completion.chunk", "choices": [], "usage": _usage(prompt, completion)}
    return _chunk(b"data: " + json.dumps(usage).encode() + b"\n\n") + _chunk(b"data: [DONE]\n\n") + _END


@dataclass
class Batch:
    """Streams that were under way together. Times in seconds by a clock of the process."""

    streams: int = 0
    tokens: int = 0
    decoded: int = 0
    first: float = 0.0
    last: float = 0.0

    def document(self) -> dict[str, float]:
        """As `/sent` tells it. `rate`: in tokens a second."""
        seconds = self.last - self.first
        return {
            "streams": self.streams,
            "tokens": self.tokens,
            "seconds": seconds,
            "rate": self.decoded / seconds if seconds > 0 else 0.0,
        }


@dataclass
class Sender:
    """All streams. `rate`: tokens a second of each; 0: no limit."""

    rate: float
    batches: list[Batch] = field(default_factory=list)
    _due: list[tuple[float, int, Stream]] = field(default_factory=list)
    _under_way: int = 0
    _count: int = 0

    def begin(self, stream: Stream) -> None:
        """A stream joins the batch that is under way, or begins one."""
        if self._under_way == 0:
            self.batches.append(Batch())
        self._under_way += 1
        self.batches[-1].streams += 1
        self.later(stream, time.perf_counter())

    def later(self, stream: Stream, when: float) -> None:
        """The stream's next token is due."""
        self._count += 1
        heapq.heappush(self._due, (when, self._count, stream))

    def sent(self, *, first: bool) -> None:
        """The kernel has taken one token."""
        batch, now = self.batches[-1], time.perf_counter()
        batch.tokens += 1
        batch.decoded += not first
        batch.first = batch.first or now
        batch.last = now

    def end(self) -> None:
        """A stream has ended, or its client is gone."""
        self._under_way -= 1

    async def run(self) -> None:
        """Send what is due, for ever."""
        while True:
            now = time.perf_counter()
            while self._due and self._due[0][0] <= now:
                _, _, stream = heapq.heappop(self._due)
                stream.send()
            await asyncio.sleep(_TICK_S if self.rate else 0 if self._due else _TICK_S)


class Stream(asyncio.Protocol):
    """One connection; on it one request after the other."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._buffer = b""
        self._left = self._asked = 0
        self._begun = 0.0
        self._paused = False
        self._waits = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Nothing is kept here beside what the kernel keeps."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=0)

    def connection_lost(self, exc: Exception | None) -> None:
        """A client that is gone gets no more."""
        del exc
        if self._left:
            self._left = 0
            self._sender.end()

    def pause_writing(self) -> None:
        """The kernel takes no more: the client is behind."""
        self._paused = True

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._paused = False
        if self._waits:
            self._waits = False
            self._taken()

    def data_received(self, data: bytes) -> None:
        """Requests, by their length."""
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, rest = self._buffer.split(b"\r\n\r\n", 1)
            lengths = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            length = int(lengths[0]) if lengths else 0
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            self._answer(head.split(b" ", 2)[1].decode(), rest[:length])

    def _answer(self, path: str, body: bytes) -> None:
        asked: dict[str, Any] = json.loads(body) if body else {}
        if path == "/sent":
            return self._whole([batch.document() for batch in self._sender.batches])
        if not asked:
            return self._whole({"object": "list", "data": [{"id": "made-up", "object": "model"}]})
        self._prompt, tokens = len(body) // 5, int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 16)
        if not asked.get("stream"):
            message = {"role": "assistant", "content": "Paris" + " spark" * (tokens - 1)}
            choice = {"index": 0, "message": message, "finish_reason": "length"}
            return self._whole({"id": _ID, "choices": [choice], "usage": _usage(self._prompt, tokens)})
        self._left = self._asked = tokens
        self._begun = time.perf_counter()
        self._transport.write(_HEAD + _FIRST)
        self._sender.begin(self)
        return None

    def _whole(self, document: Any) -> None:
        body = json.dumps(document).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)

    def send(self) -> None:
        """One token. While the kernel has not taken all of it nothing more is due."""
        if self._left == 0:
            return
        self._transport.write(_TOKEN)
        if self._paused:
            self._waits = True
        else:
            self._taken()

    def _taken(self) -> None:
        self._sender.sent(first=self._left == self._asked)
        self._left -= 1
        if self._left == 0:
            self._transport.write(_tail(self._prompt, self._asked))
            self._sender.end()
        else:
            done = self._asked - self._left
            self._sender.later(self, self._begun + done / self._sender.rate if self._sender.rate else 0.0)


async def serve(rate: float) -> None:
    """On a free port of the loopback, which is printed, until the process ends."""
    sender = Sender(rate)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Stream(sender), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await sender.run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=0.0, help="tokens a second of each stream; 0: no limit")
    asyncio.run(serve(parser.parse_args().rate))
