"""A constant load on a fleet's endpoint by a real HTTP client, streams among it, and an account of every request.

Nothing is asked twice: what does not come whole at the first try is lost, with the reason.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

HOST_HEADER = "x-tinderbox-host"
_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class Lost:
    """A request that did not come whole. `host`: the one that had begun to reply, where one had."""

    kind: str
    reason: str
    host: str | None
    tokens: int
    at: float


@dataclass
class Account:
    """`complete`: by host. What is under way is neither complete nor lost yet."""

    sent: int = 0
    complete: Counter[str] = field(default_factory=Counter)
    lost: list[Lost] = field(default_factory=list)
    streams: int = 0

    @property
    def completed(self) -> int:
        """All of them."""
        return sum(self.complete.values())

    def text(self) -> str:
        """For people, and for a failed test."""
        reasons = Counter(f"{one.kind}: {one.reason} (host {one.host}, {one.tokens} tokens)" for one in self.lost)
        told = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        return (
            f"{self.sent} sent, {self.completed} complete ({dict(self.complete)}), of these {self.streams} streams; "
            f"{len(self.lost)} lost{f': {told}' if told else ''}"
        )


class Incomplete(Exception):  # noqa: N818 (what came of a request)
    """It did not come whole."""


@dataclass
class Load:
    """So many clients, each with one request after the other. `verify`: of the certificate, as httpx takes it."""

    url: str
    key: str | None
    model: str
    streams: int = 3
    plain: int = 1
    tokens: int = 40
    verify: Any = True
    account: Account = field(default_factory=Account)
    _ends: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until `stop`; what is under way then is waited for."""
        asyncio.run(self._run())

    def stop(self) -> None:
        """Begin no more."""
        self._ends.set()

    async def _run(self) -> None:
        headers = {} if self.key is None else {"authorization": f"Bearer {self.key}"}
        limits = httpx.Limits(max_connections=self.streams + self.plain)
        async with httpx.AsyncClient(
            base_url=self.url, headers=headers, timeout=_TIMEOUT_S, verify=self.verify, trust_env=False, limits=limits
        ) as client:
            kinds = ["stream"] * self.streams + ["plain"] * self.plain
            await asyncio.gather(*(self._one_client(client, number, kind) for number, kind in enumerate(kinds)))

    async def _one_client(self, client: httpx.AsyncClient, number: int, kind: str) -> None:
        turn = 0
        while not self._ends.is_set():
            turn += 1
            body = {
                "model": self.model,
                "messages": [{"role": "user", "content": f"Client {number}, turn {turn}: tell a story."}],
                "max_tokens": self.tokens,
                "ignore_eos": True,
                "stream": kind == "stream",
            }
            state: dict[str, Any] = {"host": None, "tokens": 0}
            self.account.sent += 1
            try:
                await (self._streamed if kind == "stream" else self._whole)(client, body, state)
            except (httpx.HTTPError, Incomplete, ValueError) as error:
                reason = f"{type(error).__name__}: {error}"
                self.account.lost.append(Lost(kind, reason, state["host"], state["tokens"], time.time()))
                # A refused one is not asked a thousand times a second.
                await asyncio.sleep(0.2)
            else:
                self.account.complete[str(state["host"])] += 1
                self.account.streams += kind == "stream"

    async def _whole(self, client: httpx.AsyncClient, body: dict[str, Any], state: dict[str, Any]) -> None:
        answer = await client.post("/v1/chat/completions", json=body)
        state["host"] = answer.headers.get(HOST_HEADER)
        if answer.status_code != 200:
            raise Incomplete(f"HTTP {answer.status_code}: {answer.text[:120]}")
        state["tokens"] = answer.json()["usage"]["completion_tokens"]
        if state["tokens"] != self.tokens:
            raise Incomplete(f"{state['tokens']} tokens in place of {self.tokens}")

    async def _streamed(self, client: httpx.AsyncClient, body: dict[str, Any], state: dict[str, Any]) -> None:
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            state["host"] = answer.headers.get(HOST_HEADER)
            if answer.status_code != 200:
                raise Incomplete(f"HTTP {answer.status_code}: {(await answer.aread())[:120].decode()}")
            finished = done = False
            async for line in answer.aiter_lines():
                if line == "data: [DONE]":
                    done = True
                elif line.startswith("data: "):
                    choices = json.loads(line.removeprefix("data: ")).get("choices") or [{}]
                    state["tokens"] += bool((choices[0].get("delta") or {}).get("content"))
                    finished = finished or choices[0].get("finish_reason") is not None
        if not (done and finished and state["tokens"] == self.tokens):
            raise Incomplete(f"the stream ended early, finished: {finished}, done: {done}")


@contextmanager
def under_load(url: str, key: str | None, model: str, **how: Any) -> Iterator[Account]:
    """While this lasts, the endpoint is asked all the time; afterwards the account is whole."""
    load = Load(url, key, model, **how)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        yield load.account
    finally:
        load.stop()
        thread.join(timeout=2 * _TIMEOUT_S)
    assert not thread.is_alive(), "the load did not come to its end"
    assert load.account.sent == load.account.completed + len(load.account.lost), load.account.text()
