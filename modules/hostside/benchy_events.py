"""What llama-benchy tells of its requests while it runs (`--emit-progress`, one JSON object a line)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import gate_faults
    from modules.hostside.gate_faults import Fault, fault
else:
    import gate_faults
    from gate_faults import fault

WORKLOAD = "benchy"
# Tokens that carry no text (Harmony's channel marks) are not counted by it, so a good request can fall a little short.
LEAST_SHARE = 0.5
# The chat template's own tokens, and what cutting a text anew changes.
PROMPT_SHARE, PROMPT_TOKENS = 0.1, 48
# Fewer tokens may come in one piece by chance.
FEWEST_STREAMED = 8


@dataclass
class Request:
    """One measured request. `pieces`: parts of the reply that carried text; `pause_s`: the longest between two."""

    asked: int
    prompt: int
    answered: bool = False
    pieces: int = 0
    pause_s: float = 0.0
    last: float | None = None
    got: int | None = None
    prompt_told: int = 0


class Requests:
    """All measured requests of a workload (llama-benchy's warm-ups emit nothing)."""

    def __init__(self, path: Path, workload: dict[str, Any], runs: int | None = None) -> None:
        self._path = path
        self._offset = 0
        cells = len(workload["pp"]) * len(workload["tg"]) * len(workload["depth"])
        self.total = cells * sum(workload["concurrency"]) * (workload["runs"] if runs is None else runs)
        self.step = "warming up"
        self.requests: dict[int, Request] = {}
        self.errors: list[str] = []
        self._pause_s = float(workload["longest_pause_s"])

    @property
    def ended(self) -> int:
        """How many have come to an end."""
        return sum(one.got is not None for one in self.requests.values())

    @property
    def generated(self) -> int:
        """Tokens, over all."""
        return sum(one.got or 0 for one in self.requests.values())

    def read(self) -> None:
        """Take in what is new; a line that is not whole yet waits."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except FileNotFoundError:
            return
        whole = new[: new.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        if event["type"] == "request_start":
            size = event["prompt_size"] + event["context_size"]
            self.requests[event["request_id"]] = Request(event["response_size"], size)
            depth = f" d{event['context_size']}" if event["context_size"] else ""
            self.step = f"pp{event['prompt_size']} tg{event['response_size']}{depth} c{event['concurrency']}"
        request = self.requests.get(event.get("request_id", -1))
        if request is None:
            return
        if event["type"] == "request_first_response":
            request.answered = True
        elif event["type"] == "tokens":
            request.pieces += 1
            at = float(event["ts"])
            request.pause_s = max(request.pause_s, 0.0 if request.last is None else at - request.last)
            request.last = at
        elif event["type"] == "request_end":
            request.got, request.prompt_told = event["total_tokens"], event["prompt_tokens"]
            if event["error"]:
                self.errors.append(event["error"])

    def longest_pause_s(self) -> float:
        """Of all streams."""
        return max((one.pause_s for one in self.requests.values()), default=0.0)

    def faults(self) -> list[Fault]:
        """Why these requests measure nothing: the first fault of a kind stands for all of it."""
        if self.errors:
            told = f"{len(self.errors)} of {self.total} requests failed, the first with: {self.errors[0][:300]}"
            return [fault(gate_faults.FAILED, WORKLOAD, told)]
        if not self.requests:
            return [fault(gate_faults.NONE, WORKLOAD, f"none of {self.total} requests was sent")]
        if self.ended != self.total or len(self.requests) != self.total:
            told = f"{self.ended} of {self.total} requests came to an end"
            return [fault(gate_faults.FAILED, WORKLOAD, told)]
        found: dict[str, Fault] = {}
        for one in self.requests.values():
            kind_told = self._fault(one)
            if kind_told is not None and kind_told[0] not in found:
                found[kind_told[0]] = fault(kind_told[0], WORKLOAD, kind_told[1])
        return list(found.values())

    def _fault(self, one: Request) -> tuple[str, str] | None:
        if one.pieces == 0:
            return _nothing_came(one)
        return _miscounted(one) or _badly_streamed(one, self._pause_s)


def _nothing_came(one: Request) -> tuple[str, str]:
    if one.answered:
        return gate_faults.EMPTY, f"a reply had no content, where {one.asked} tokens were asked for"
    return gate_faults.NOT_STREAMED, "a request that asked for a stream brought no piece of one"


def _miscounted(one: Request) -> tuple[str, str] | None:
    got = one.got or 0
    if got > one.asked or one.pieces > got:
        told = f"a reply of {one.pieces} pieces counts {got} tokens, where {one.asked} were asked for"
        return gate_faults.WRONG_USAGE, told
    if got < LEAST_SHARE * one.asked:
        return gate_faults.TOO_FEW, f"a request brought {got} of the {one.asked} tokens that it asked for"
    if one.prompt_told and abs(one.prompt_told - one.prompt) > PROMPT_TOKENS + PROMPT_SHARE * one.prompt:
        return gate_faults.WRONG_USAGE, f"usage counts {one.prompt_told} prompt tokens, where {one.prompt} were sent"
    return None


def _badly_streamed(one: Request, pause_s: float) -> tuple[str, str] | None:
    if one.pieces == 1 and (one.got or 0) >= FEWEST_STREAMED:
        return gate_faults.NOT_STREAMED, f"a reply of {one.got} tokens came in one piece"
    if one.pause_s > pause_s:
        return gate_faults.STALLED, f"a stream stood still for {one.pause_s:.1f} s"
    return None
