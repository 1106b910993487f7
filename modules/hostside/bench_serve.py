"""`vllm bench serve` with a cap on time, and several runs in one process. Runs in the engine's container.

It takes a JSON object on standard input: `argv` of `vllm bench serve`, `seeds` (one run each), `time_cap_s` (null:
none), `dataset` (what the file after --dataset-path holds, or null) and `key_variable` (name of the variable with the
API key, or null). Requests that were not begun within the cap are never sent; those that were are let finish. The last
line that it prints is SIGN and what came out, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

SIGN = "tinderbox-result "
NOT_SENT = "tinderbox: not sent, the time cap has passed"
DATASET = Path("/tmp/tinderbox-dataset.json")  # noqa: S108, in the container
_TEXTS = ("generated_texts", "errors", "itls", "ttfts", "input_lens", "output_lens", "start_times", "latencies")


class Cap:
    """Keeps requests from being sent once the time is up; it begins with the first run's first request."""

    def __init__(self, serve: Any, seconds: float | None) -> None:
        self._seconds = seconds
        self._deadline = float("inf")
        self._output = serve.RequestFuncOutput
        requests = serve.get_request

        async def begun(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
            self._deadline = time.monotonic() + (float("inf") if seconds is None else seconds)
            async for each in requests(*arguments, **named):
                yield each

        serve.get_request = begun

    def capped(self, send: Any) -> Any:
        """The same, but that nothing is sent after the cap."""

        async def sent(*arguments: Any, **named: Any) -> Any:
            if time.monotonic() > self._deadline:
                output = self._output()
                output.error = NOT_SENT
                output.start_time = time.perf_counter()
                return output
            return await send(*arguments, **named)

        return sent

    def rest(self) -> None:
        """Until the next run begins: its own check and warm-up are sent."""
        self._deadline = float("inf")


def summary(result: dict[str, Any], wall_s: float) -> dict[str, Any]:
    """What is kept of a run. Requests that were not sent are neither done nor failed."""
    errors = [error for error in result.get("errors") or [] if error]
    not_sent = sum(error == NOT_SENT for error in errors)
    failed = [error for error in errors if error != NOT_SENT]
    texts, lengths = result.get("generated_texts") or [], result.get("output_lens") or []
    pauses = [pause for itls in result.get("itls") or [] for pause in itls]
    good = [(text, length) for text, length in zip(texts, lengths, strict=False) if length]
    kept = {name: value for name, value in result.items() if name not in _TEXTS}
    return {
        **{name: value for name, value in kept.items() if isinstance(value, int | float | str) or value is None},
        "failed": len(failed),
        "first_error": failed[0][-500:] if failed else None,
        "not_sent": not_sent,
        "empty": sum(not text for text, _ in good),
        "one_piece": sum(not itls for itls, n in zip(result.get("itls") or [], lengths, strict=False) if n and n > 8),
        # None: this version does not tell of single requests.
        "fewest_tokens": min((length for _, length in good), default=None),
        "longest_pause_s": max(pauses, default=None),
        "wall_s": wall_s,
    }


def runs(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Every run."""
    from vllm.benchmarks import serve

    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:  # before 0.12
        from vllm.utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser()
    serve.add_cli_args(parser)
    # A request is sent and thrown away before each run; later versions do it only when told.
    known = parser._option_string_actions
    warm_up = ["--num-warmups", "1"] if "--num-warmups" in known else []
    cap = Cap(serve, request["time_cap_s"])
    for name, send in list(serve.ASYNC_REQUEST_FUNCS.items()):
        serve.ASYNC_REQUEST_FUNCS[name] = cap.capped(send)
    found = []
    for seed in request["seeds"]:
        arguments = parser.parse_args([*request["argv"], *warm_up, "--seed", str(seed)])
        started = time.monotonic()
        found.append(summary(asyncio.run(serve.main_async(arguments)), time.monotonic() - started))
        cap.rest()
    return found


def main() -> int:
    """0 when there is a result."""
    request = json.load(sys.stdin)
    if request["key_variable"]:
        os.environ["OPENAI_API_KEY"] = os.environ[request["key_variable"]]
    if request["dataset"] is not None:
        DATASET.write_text(json.dumps(request["dataset"]), encoding="utf-8")
    try:
        found = runs(request)
    finally:
        DATASET.unlink(missing_ok=True)
    print(SIGN + json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
