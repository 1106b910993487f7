"""The least that a client has to do: read streams, and note when tokens came. A measure of what Python can see at all.

Run by the Python of llama-benchy's environment, whose HTTP library (aiohttp) it uses as that does.
`plain_client.py URL STREAMS TOKENS` prints one line: the rate seen, by llama-benchy's definition of a total.
"""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp

_MARK = b'"token_ids"'


async def stream(session: aiohttp.ClientSession, url: str, tokens: int) -> list[float]:
    """When each token of one answer came. An event may be cut between two reads, and its mark is in one of them whole.

    The mark is short and an event is one write of the server's, so a cut inside of a mark does not occur on loopback;
    the count is checked at the end.
    """
    body = {"model": "made-up", "messages": [{"role": "user", "content": "spark " * 64}], "max_tokens": tokens}
    times: list[float] = []
    async with session.post(f"{url}/v1/chat/completions", json=body | {"stream": True}) as answer:
        async for data in answer.content.iter_any():
            now = time.perf_counter()
            times += [now] * data.count(_MARK)
    return times


async def main(url: str, streams: int, tokens: int) -> float:
    """Tokens after each stream's first, over the time from the first token of all to the last."""
    timeout = aiohttp.ClientTimeout(total=3600)
    connector = aiohttp.TCPConnector(limit=streams)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        found = await asyncio.gather(*(stream(session, url, tokens) for _ in range(streams)))
    if sum(map(len, found)) != streams * tokens:
        raise SystemExit(f"{sum(map(len, found))} tokens came in place of {streams * tokens}")
    seconds = max(times[-1] for times in found) - min(times[0] for times in found)
    return sum(len(times) - 1 for times in found) / seconds


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
