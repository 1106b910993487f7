"""The benchmark's server: what it sends is what it says that it has sent, at the rate that it was told."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.gate_client import serving
from benchmarks.stream_clients import ClientError, _rate_of
from benchmarks.token_server import Batch


@pytest.fixture
def url() -> Iterator[str]:
    with serving(50.0) as found:
        yield found


def asked(url: str, body: dict[str, Any] | None = None, path: str = "/v1/chat/completions") -> str:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url + path, data=data), timeout=30) as answer:
        text: bytes = answer.read()
    return text.decode()


def events(text: str) -> list[Any]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def test_a_stream_has_every_token_and_its_usage(url: str) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 5, "stream": True}
    text = asked(url, body)
    found = events(text)
    assert [event["choices"][0]["token_ids"] for event in found[1:-1]] == [[4711]] * 5
    assert found[-1]["usage"]["completion_tokens"] == 5
    assert text.endswith("data: [DONE]\n\n")
    (batch,) = json.loads(asked(url, path="/sent"))
    assert (batch["streams"], batch["tokens"]) == (1, 5)


def test_streams_that_overlap_are_a_batch_and_the_next_ones_another(url: str) -> None:
    body = {"messages": [], "max_tokens": 8, "stream": True}

    async def together(count: int) -> None:
        await asyncio.gather(*(asyncio.to_thread(asked, url, body) for _ in range(count)))

    asyncio.run(together(3))
    asyncio.run(together(2))
    assert [batch["tokens"] for batch in json.loads(asked(url, path="/sent"))] == [24, 16]


def test_a_whole_answer_is_no_batch(url: str) -> None:
    document = json.loads(asked(url, {"messages": [], "max_tokens": 3}))
    assert document["usage"]["completion_tokens"] == 3
    assert json.loads(asked(url, path="/sent")) == []


def test_a_rate_is_of_the_tokens_after_each_streams_first() -> None:
    batch = Batch(streams=2, tokens=22, decoded=20, first=10.0, last=14.0)
    assert batch.document()["rate"] == 5.0
    assert Batch().document()["rate"] == 0.0


def test_vllms_detailed_result_gives_the_same_rate_with_and_without_an_empty_first_event() -> None:
    plain = {"start_times": [0.0, 1.0], "ttfts": [1.0, 1.0], "itls": [[1.0] * 4, [1.0] * 4]}
    assert _rate_of(plain, 5) == pytest.approx(8 / 5)
    # A first event without a token: its time is that of the reply's head.
    early = {"start_times": [0.0, 1.0], "ttfts": [0.5, 0.5], "itls": [[0.5] + [1.0] * 4, [0.5] + [1.0] * 4]}
    assert _rate_of(early, 5) == pytest.approx(8 / 5)
    with pytest.raises(ClientError, match="in place of 9"):
        _rate_of(plain, 9)
