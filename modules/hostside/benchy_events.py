"""What llama-benchy tells of its requests while it runs (`--emit-progress`, one JSON object a line)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# Tokens that carry no text (Harmony's channel marks) are not counted by it, so a good request can fall a little short.
LEAST_SHARE = 0.5


class Requests:
    """All measured requests of a workload (llama-benchy's warm-ups emit nothing)."""

    def __init__(self, path: Path, workload: dict[str, Any]) -> None:
        self._path = path
        self._offset = 0
        cells = len(workload["pp"]) * len(workload["tg"]) * len(workload["depth"])
        self.total = cells * sum(workload["concurrency"]) * workload["runs"]
        self.step = "warming up"
        self.asked: dict[int, int] = {}
        self.got: dict[int, int] = {}
        self.errors: list[str] = []

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
            self.asked[event["request_id"]] = event["response_size"]
            depth = f" d{event['context_size']}" if event["context_size"] else ""
            self.step = f"pp{event['prompt_size']} tg{event['response_size']}{depth} c{event['concurrency']}"
        elif event["type"] == "request_end":
            self.got[event["request_id"]] = event["total_tokens"]
            if event["error"]:
                self.errors.append(event["error"])

    def complaint(self) -> str | None:
        """Why these requests measure nothing, or None."""
        if self.errors:
            return f"{len(self.errors)} requests failed, the first with: {self.errors[0]}"
        if len(self.got) != self.total or self.got.keys() != self.asked.keys():
            return f"{len(self.got)} of {self.total} requests came to an end"
        for request, asked in self.asked.items():
            if self.got[request] < LEAST_SHARE * asked:
                return f"a request brought {self.got[request]} of the {asked} tokens that it asked for"
        return None
