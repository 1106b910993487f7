"""Replies: what is right, what is wrong and by which name, and how a cached one is told."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.hostside import chat_stream, gate_faults
from modules.hostside.chat_stream import Reply
from modules.hostside.gate_answers import Memory, body_of, filled, fresh_word, wrong
from modules.hostside.json_form import complaint
from modules.lab.model.recital import TEXT

QUESTIONS = load_catalog().answers["gpt-oss"].model_dump(mode="json")["questions"]
WORD = "tamirobe-4821"


def reply(content: str = "", *, tokens: int = 40, pieces: int = 20, **changes: Any) -> Reply:
    usage = {"prompt_tokens": 80, "completion_tokens": tokens}
    given = {"reasoning": "let me think", "streamed": True, "finish": "stop", "usage": usage, **changes}
    return Reply(content=content, pieces=pieces, **given)


def asked(name: str) -> dict[str, Any]:
    question: dict[str, Any] = filled(QUESTIONS[name], WORD)
    return question


CALL = [{"name": "look_up_stock", "arguments": json.dumps({"part": WORD})}]
BERLIN = '{"city": "Berlin", "year": 2023, "millions": 3.7}'


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("arithmetic", reply("391")),
        ("copying", reply(f"{WORD.title()}.")),
        ("json", reply(BERLIN)),
        ("tool", reply(calls=CALL, pieces=4)),
        ("counting", reply("Once upon a time", tokens=64)),
    ],
)
def test_right_replies(name: str, given: Reply) -> None:
    assert wrong(asked(name), given) is None


@pytest.mark.parametrize(
    ("name", "given", "kind", "told"),
    [
        ("arithmetic", reply("392"), gate_faults.WRONG, "lacks '391'"),
        ("arithmetic", reply("391", reasoning=""), gate_faults.WRONG, "no reasoning apart"),
        ("arithmetic", reply("<|channel|>analysis 391"), gate_faults.WRONG, "holds <|channel|>"),
        ("arithmetic", reply("<think>17 * 23</think> 391"), gate_faults.WRONG, "holds <think>"),
        ("arithmetic", reply(""), gate_faults.EMPTY, "no content, only reasoning"),
        ("arithmetic", reply("", reasoning=""), gate_faults.EMPTY, "no content (it ended by stop)"),
        ("arithmetic", reply(error="HTTP 500: no"), gate_faults.FAILED, "HTTP 500"),
        ("arithmetic", reply("391", streamed=False), gate_faults.NOT_STREAMED, "none came"),
        ("arithmetic", reply("391", pieces=1), gate_faults.NOT_STREAMED, "40 tokens came in one piece"),
        ("arithmetic", reply("391", pause_s=20.1), gate_faults.STALLED, "20.1 s"),
        ("arithmetic", reply("391", usage=None), gate_faults.WRONG_USAGE, "usage is null"),
        ("arithmetic", reply("391", tokens=12), gate_faults.WRONG_USAGE, "12 tokens in a reply of 20 pieces"),
        ("counting", reply("Once", tokens=77), gate_faults.WRONG_USAGE, "77 tokens in a reply of exactly 64"),
        ("json", reply("Berlin, 2023"), gate_faults.WRONG, "no JSON"),
        ("json", reply('{"city": "Berlin", "year": 2023}'), gate_faults.WRONG, "lacks millions"),
        ("json", reply(BERLIN.replace("3.7", "37")), gate_faults.WRONG, "millions is not 3.7"),
        ("tool", reply("The stock is 7."), gate_faults.WRONG, "called none"),
        ("tool", reply(calls=CALL * 2, pieces=4), gate_faults.WRONG, "not look_up_stock once"),
        ("tool", reply(calls=[{**CALL[0], "arguments": "{"}], pieces=4), gate_faults.WRONG, "no JSON"),
        ("tool", reply(calls=[{**CALL[0], "arguments": "{}"}], pieces=4), gate_faults.WRONG, "arguments are {}"),
    ],
)
def test_wrong_replies(name: str, given: Reply, kind: str, told: str) -> None:
    found = wrong(asked(name), given)
    assert found is not None
    assert found[0] == kind
    assert told in found[1]


def test_a_request_asks_for_what_is_checked() -> None:
    assert body_of(asked("json"), "m")["response_format"]["json_schema"]["schema"]["required"]
    assert body_of(asked("tool"), "m")["tools"][0]["function"]["name"] == "look_up_stock"
    counting = body_of(asked("counting"), "m")
    assert (counting["max_tokens"], counting["min_tokens"], counting["ignore_eos"]) == (64, 64, True)
    assert WORD in body_of(asked("copying"), "m")["messages"][0]["content"]


def test_no_word_is_asked_for_twice() -> None:
    chance = random.Random(6)
    assert len({fresh_word(chance) for _ in range(1000)}) == 1000


def test_a_reply_out_of_a_cache_is_told_from_a_wrong_one() -> None:
    memory = Memory()
    assert memory.cached("copying", "first-1111", "first-1111") is None
    assert "repeats 'first-1111'" in (memory.cached("copying", "second-2222", "It is first-1111.") or "")
    assert memory.cached("arithmetic", "third-3333", "391") is None
    assert "the reply to 'arithmetic'" in (memory.cached("json", "fourth-4444", "391") or "")
    assert memory.cached("json", "fifth-5555", "Berlin") is None


def test_the_labs_model_is_asked_for_what_it_recites() -> None:
    recital = load_catalog().answers["lab-recital"].questions["recital"]
    assert all("".join(TEXT).startswith(text) for text in recital.contains)
    assert recital.max_tokens == len(TEXT)


@pytest.mark.parametrize(
    ("schema", "text", "told"),
    [
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", None),
        ({"type": "array", "items": {"type": "integer"}}, "[1, true]", "it[] is no integer"),
        ({"type": "object", "properties": {}, "additionalProperties": False}, '{"a": 1}', "it holds a"),
        ({"type": "string", "enum": ["a"]}, '"b"', "it is none of ['a']"),
        ({"type": "boolean"}, "true", None),
        ({"type": "number"}, "null", "it is no number"),
    ],
)
def test_json_of_a_form(schema: dict[str, Any], text: str, told: str | None) -> None:
    found = complaint(text, schema)
    assert (found is None) if told is None else told in (found or "")


def test_a_server_that_is_not_there_is_told_and_not_raised() -> None:
    found = chat_stream.asked("http://127.0.0.1:9", {"model": "m"}, "key", 1.0)
    assert "refused" in (found.error or "")
