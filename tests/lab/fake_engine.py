"""A fast OpenAI-compatible server of known speed that misbehaves on demand, and a proxy that delays its tokens.

Its tokens are bytes: with the tokenizer that `write_tokenizer` writes, every count that a client makes is exact.
"""

from __future__ import annotations

import http.client
import itertools
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WORD = re.compile(r"[a-z]{8}-\d{4}")
TEMPLATE_TOKENS = 9
STALL_S = 20.0


@dataclass
class Behaviour:
    """How a fake engine serves. `token_s`: from one token to the next. `fault`: what it does wrong, by name.

    `dies`: what it does when it has had enough (fault `dies`). `token_ids`: tell them, as vLLM does when asked.
    `metrics`: what it tells at `/metrics`. `key`: who asks below /v1 must present it, as vLLM has it.
    """

    token_s: float = 0.004
    fault: str = ""
    token_ids: bool = True
    metrics: str = ""
    key: str = ""
    dies: Callable[[], None] = lambda: None
    asked: int = 0
    streams: int = 0
    running: int = 0
    first_reply: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While a request is replied to."""
        with self.lock:
            self.running += 1
        try:
            yield
        finally:
            with self.lock:
                self.running -= 1

    def counted(self, *, stream: bool) -> tuple[int, int]:
        """The number of this request, and of this stream, from 1."""
        with self.lock:
            self.asked += 1
            self.streams += stream
            return self.asked, self.streams


def reply_to(prompt: str, behaviour: Behaviour) -> str:
    """What it says: a word that it is to repeat, the answer to the one sum that it knows, or a story."""
    word = WORD.search(prompt)
    text = "391" if "17 * 23" in prompt else word[0] if word and "Repeat" in prompt else "once upon a time "
    with behaviour.lock:
        behaviour.first_reply = behaviour.first_reply or text
    return behaviour.first_reply if behaviour.fault == "cached" else text


def handler(behaviour: Behaviour) -> type[BaseHTTPRequestHandler]:
    """Of one engine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def _knows_the_key(self) -> bool:
            if behaviour.key and self.path.startswith("/v1"):
                return self.headers.get("authorization") == f"Bearer {behaviour.key}"
            return True

        def do_GET(self) -> None:
            if not self._knows_the_key():
                self._send(401, b'{"error": "Unauthorized"}')
            elif self.path == "/metrics":
                self._send(200, behaviour.metrics.encode(), "text/plain")
            else:
                self._send(200, json.dumps({"data": [{"id": "fake"}]}).encode())

        def do_POST(self) -> None:
            with behaviour.at_work():
                self._reply()

        def _reply(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self._knows_the_key():
                self._send(401, b'{"error": "Unauthorized"}')
                return
            stream = bool(body.get("stream")) and body["max_tokens"] > 1
            _, streams = behaviour.counted(stream=stream)
            if behaviour.fault == "tenth-fails" and stream and streams % 10 == 0:
                self._send(500, b'{"error": "out of order"}')
                return
            prompt = "".join(message["content"] for message in body["messages"])
            exact = bool(body.get("ignore_eos"))
            text = reply_to(prompt, behaviour) if not exact else "once upon a time "
            count = body["max_tokens"] if exact or not text else min(len(text.encode()), body["max_tokens"])
            tokens = [text[at % len(text)] for at in range(count)]
            usage = {"prompt_tokens": len(prompt.encode()) + TEMPLATE_TOKENS, "completion_tokens": count}
            if behaviour.fault == "wrong-usage":
                usage["completion_tokens"] = round(1.2 * count)
            if not body.get("stream") or behaviour.fault == "no-stream":
                message = {"role": "assistant", "content": "".join(tokens)}
                choice = {"message": message, "finish_reason": "stop"}
                self._send(200, json.dumps({"choices": [choice], "usage": usage}).encode())
                return
            self._stream(tokens, usage, streams, with_ids=bool(body.get("return_token_ids")))

        def _stream(self, tokens: list[str], usage: dict[str, int], number: int, *, with_ids: bool) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self._event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
            pieces = ["".join(tokens)] if behaviour.fault == "one-piece" else tokens
            begun, stalled = time.monotonic(), 0.0
            for at, piece in enumerate(pieces):
                if behaviour.fault == "stall" and number == 4 and at == len(pieces) // 2:
                    stalled = STALL_S
                if behaviour.fault == "dies" and number == 4 and at == len(pieces) // 2:
                    behaviour.dies()
                    self.connection.close()
                    return
                # By the clock and not by sleeping again and again, so that the speed is the one that was asked for.
                time.sleep(max(0.0, begun + stalled + (at + 1) * behaviour.token_s - time.monotonic()))
                choice: dict[str, Any] = {"delta": {"content": "" if behaviour.fault == "empty" else piece}}
                if with_ids and behaviour.token_ids:
                    choice["token_ids"] = list(piece.encode())
                self._event({"choices": [choice]})
            self._event({"choices": [{"delta": {}, "finish_reason": "length"}]})
            self._event({"choices": [], "usage": usage})
            self._chunk(b"data: [DONE]\n\n")
            self._chunk(b"")

        def _event(self, event: dict[str, Any]) -> None:
            self._chunk(b"data: " + json.dumps(event).encode() + b"\n\n")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def delaying(upstream: str, delay_s: Callable[[int], float], tokens: int) -> type[BaseHTTPRequestHandler]:
    """A proxy that holds back the n-th piece of a stream of `tokens` by n delays; `delay_s`: by the stream's number."""
    numbers = itertools.count()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            self._forward(None)

        def do_POST(self) -> None:
            self._forward(self.rfile.read(int(self.headers["content-length"])))

        def _forward(self, body: bytes | None) -> None:
            document = json.loads(body) if body else {}
            slowed = bool(document.get("stream")) and document.get("max_tokens") == tokens
            with lock:
                delay = delay_s(next(numbers)) if slowed else 0.0
            connection = http.client.HTTPConnection(upstream.removeprefix("http://"), timeout=60)
            connection.request(self.command, self.path, body, {"content-type": "application/json"} if body else {})
            answer = connection.getresponse()
            self.send_response(answer.status)
            self.send_header("content-type", answer.getheader("content-type") or "")
            self.end_headers()
            pieces = 0
            for came, line in _stamped(answer):
                if b'"token_ids"' in line:
                    pieces += 1
                    time.sleep(max(0.0, came + pieces * delay - time.monotonic()))
                self.wfile.write(line)
                self.wfile.flush()
            connection.close()

    return Handler


def _stamped(answer: http.client.HTTPResponse) -> Iterator[tuple[float, bytes]]:
    """Each line with the time at which it came, also while the reader of this sleeps."""
    lines: queue.Queue[tuple[float, bytes] | None] = queue.Queue()

    def read() -> None:
        for line in answer:
            lines.put((time.monotonic(), line))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while (one := lines.get()) is not None:
        yield one


@contextmanager
def served(kind: type[BaseHTTPRequestHandler]) -> Iterator[tuple[str, ThreadingHTTPServer]]:
    """Base URL of a server on a free port of loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def write_tokenizer(folder: Path) -> Path:
    """A tokenizer whose tokens are bytes, in Hugging Face's form."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in kept]
    letters = {byte: chr(byte) for byte in kept} | {byte: chr(0x100 + at) for at, byte in enumerate(others)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer: dict[str, Any] = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {letters[byte]: byte for byte in range(0x100)}, "merges": [],
        },
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 131072}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
