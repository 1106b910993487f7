"""What a served model is asked for, and whether its answer holds anything: text, a vector, or scores of texts.

A model that generates is asked for a chat reply by `await_ready`; this is for those that do not.
"""

from __future__ import annotations

import json
from typing import Any

GENERATE, EMBED, RERANK = "generate", "embed", "rerank"
TASKS = (GENERATE, EMBED, RERANK)


def question(task: str, model: str) -> tuple[str, dict[str, Any]]:
    """Path and body of a small request for a model that embeds or reranks."""
    if task == EMBED:
        return "/v1/embeddings", {"model": model, "input": "Hello."}
    return "/v1/rerank", {"model": model, "query": "Where do fish live?", "documents": ["In water.", "In trees."]}


def answer(task: str, body: bytes) -> str:
    """The answer in words, as the ready line tells it; empty where it holds nothing, or only zeros."""
    try:
        document = json.loads(body)
        if task == EMBED:
            vector = [float(number) for number in document["data"][0]["embedding"]]
            return f"a vector of {len(vector)} numbers" if any(vector) else ""
        scores = {int(one["index"]): float(one["relevance_score"]) for one in document["results"]}
        return f"scores {scores[0]:.3g} and {scores[1]:.3g}" if len(scores) > 1 else ""
    except (ValueError, KeyError, IndexError, TypeError):
        return ""
