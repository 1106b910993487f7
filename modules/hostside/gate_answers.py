"""The workload `answers`: prompts whose replies can be checked, because a broken kernel can be fast."""

from __future__ import annotations

import argparse
import json
import random
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import gate_faults
    from modules.hostside.benchy import given_key
    from modules.hostside.chat_stream import Reply, asked
    from modules.hostside.gate_faults import Fault, fault
    from modules.hostside.json_form import complaint
    from modules.hostside.progress import Progress
else:
    import gate_faults
    from benchy import given_key
    from chat_stream import asked
    from gate_faults import fault
    from json_form import complaint
    from progress import Progress

WORKLOAD = "answers"
FRESH = "{fresh}"
_MARKS = re.compile(r"<\|[a-z_]+\|>|</?think(?:ing)?>|\[/?THINK\]")
_SHOWN = 160
# Fewer tokens may come in one piece by chance.
_FEWEST_STREAMED = 16
_PAUSE_S = 15.0


def fresh_word(chance: random.Random) -> str:
    """A word that nobody has ever asked for."""
    syllables = "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(4))
    return f"{syllables}-{chance.randrange(1000, 10_000)}"


def filled(value: Any, word: str) -> Any:
    """The same, with the fresh word in its places."""
    if isinstance(value, str):
        return value.replace(FRESH, word)
    if isinstance(value, dict):
        return {key: filled(one, word) for key, one in value.items()}
    return [filled(one, word) for one in value] if isinstance(value, list) else value


def body_of(question: dict[str, Any], served_as: str) -> dict[str, Any]:
    """The request."""
    exact = question.get("exact_tokens")
    body: dict[str, Any] = {
        "model": served_as,
        "messages": [{"role": "user", "content": question["prompt"]}],
        "max_tokens": exact or question["max_tokens"],
        "temperature": 0,
    }
    if exact:
        body |= {"min_tokens": exact, "ignore_eos": True}
    if question.get("json_schema"):
        form = {"name": "reply", "schema": question["json_schema"], "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    if question.get("tools"):
        body["tools"] = [{"type": "function", "function": tool} for tool in question["tools"]]
    return body


def wrong(question: dict[str, Any], reply: Reply) -> tuple[str, str] | None:
    """What is wrong with a reply, as kind and words; None when it is right."""
    if reply.error is not None:
        return gate_faults.FAILED, reply.error
    if not reply.streamed:
        return gate_faults.NOT_STREAMED, "a stream was asked for and none came"
    if not reply.content and not reply.calls:
        why = "no content, only reasoning" if reply.reasoning else "no content"
        return gate_faults.EMPTY, f"{why} (it ended by {reply.finish})"
    if reply.pause_s > _PAUSE_S:
        return gate_faults.STALLED, f"the stream stood still for {reply.pause_s:.1f} s"
    return _miscounted(question, reply) or _not_right(question, reply)


def _miscounted(question: dict[str, Any], reply: Reply) -> tuple[str, str] | None:
    usage, exact = reply.usage or {}, question.get("exact_tokens")
    told, prompt = usage.get("completion_tokens"), usage.get("prompt_tokens")
    if not isinstance(told, int) or not isinstance(prompt, int) or prompt < 1:
        return gate_faults.WRONG_USAGE, f"usage is {json.dumps(reply.usage)[:_SHOWN]}"
    if told < reply.pieces:
        return gate_faults.WRONG_USAGE, f"usage counts {told} tokens in a reply of {reply.pieces} pieces"
    if exact and told != exact:
        return gate_faults.WRONG_USAGE, f"usage counts {told} tokens in a reply of exactly {exact}"
    if reply.pieces == 1 and told >= _FEWEST_STREAMED and not reply.calls:
        return gate_faults.NOT_STREAMED, f"a reply of {told} tokens came in one piece"
    return None


def _not_right(question: dict[str, Any], reply: Reply) -> tuple[str, str] | None:
    shown = reply.content.strip()[:_SHOWN]
    marks = _MARKS.search(reply.content)
    if marks is not None:
        return gate_faults.WRONG, f"its content holds {marks[0]}, which a parser should have taken out: {shown!r}"
    if question.get("reasoning") == "apart" and not reply.reasoning:
        return gate_faults.WRONG, "it brought no reasoning apart from its content"
    lacking = [text for text in question.get("contains") or () if text.lower() not in reply.content.lower()]
    if lacking:
        return gate_faults.WRONG, f"its content lacks {lacking[0]!r}: {shown!r}"
    if question.get("json_schema"):
        why = complaint(reply.content, question["json_schema"])
        return None if why is None else (gate_faults.WRONG, f"{why}: {shown!r}")
    return _wrong_call(question["tool"], reply) if question.get("tool") else None


def _wrong_call(wanted: dict[str, Any], reply: Reply) -> tuple[str, str] | None:
    if [call["name"] for call in reply.calls] != [wanted["name"]]:
        names = ", ".join(call["name"] for call in reply.calls) or f"none, but {reply.content.strip()[:_SHOWN]!r}"
        return gate_faults.WRONG, f"it called {names}, and not {wanted['name']} once"
    try:
        given = json.loads(reply.calls[0]["arguments"])
    except ValueError:
        return gate_faults.WRONG, f"the call's arguments are no JSON: {reply.calls[0]['arguments'][:_SHOWN]!r}"
    off = {
        key: value for key, value in wanted["arguments"].items() if str(given.get(key)).lower() != str(value).lower()
    }
    return (gate_faults.WRONG, f"the call's arguments are {json.dumps(given)[:_SHOWN]}") if off else None


class Memory:
    """What was asked and answered before, to tell a wrong reply from one out of a cache."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._replies: dict[str, str] = {}

    def cached(self, name: str, word: str, content: str) -> str | None:
        """Whose answer this is, when it is an earlier one's; and remember this one."""
        owner = self._replies.get(content) if content else None
        old = next((one for one in self._words if one in content and one != word), None)
        self._words.append(word)
        self._replies.setdefault(content, name)
        if old is not None:
            return f"it repeats {old!r}, which an earlier request asked for"
        return None if owner is None else f"it is word for word the reply to {owner!r}"


def run_answers(
    options: argparse.Namespace, answers: dict[str, Any], progress: Progress, seed: int | None = None
) -> dict[str, Any]:
    """Ask everything, what holds a fresh word twice. Returns what is kept of it."""
    chance, memory = random.Random(seed), Memory()  # noqa: S311, nothing secret
    key = given_key(options)
    plan = [
        (name, question)
        for name, question in answers["questions"].items()
        for _ in range(2 if FRESH in question["prompt"] else 1)
    ]
    kept: list[dict[str, Any]] = []
    found: list[Fault] = []
    for number, (name, question) in enumerate(plan):
        progress.report(f"answers: {name}", number, len(plan), "questions")
        word = fresh_word(chance)
        asking = filled(question, word)
        reply = asked(options.url, body_of(asking, options.served_as), key, answers["time_limit_s"])
        why = wrong(asking, reply)
        cached = memory.cached(name, word, reply.content)
        if why is not None and why[0] == gate_faults.WRONG and cached is not None:
            why = gate_faults.CACHED, cached
        if why is not None:
            found.append(fault(why[0], WORKLOAD, f"{name}: {why[1]}"))
        kept.append(
            {"name": name, "right": why is None, "why": None if why is None else why[1],
             "seconds": round(reply.seconds, 3), "usage": reply.usage}
        )  # fmt: skip
    return {
        "prompts": "unique where they hold a fresh word",
        "replies": kept,
        "requests": len(plan),
        "generated_tokens": sum(int((one["usage"] or {}).get("completion_tokens") or 0) for one in kept),
        "faults": found,
    }
