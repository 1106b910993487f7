"""Answers: prompts whose replies can be checked, because a broken kernel can be fast."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from modules.spec.base import Strict, broken_rule


class Question(Strict):
    """One prompt, and what a right reply to it must show. Every check that is given must hold.

    In `prompt`, `contains` and `tool` the word `{fresh}` stands for a word made anew for every request, so that a reply
    out of a cache is never right.

    `contains`: texts that must stand in the content. `json_schema`: asked for as the response's format, and the
    content must be JSON of that form. `tool`: a function that must be called, with these arguments; `tools` declares
    it. `reasoning`: `apart` if the reply must bring reasoning in a field of its own, `any` if it may. Never may content
    hold marks of channels or thoughts. `exact_tokens`: the reply is made to go on for exactly so many tokens, and
    `usage` must say so. `max_tokens`: else.
    """

    prompt: str = Field(min_length=1)
    contains: tuple[str, ...] = ()
    json_schema: dict[str, Any] | None = None
    tools: tuple[dict[str, Any], ...] = ()
    tool: dict[str, Any] | None = None
    reasoning: Literal["apart", "any"] = "any"
    exact_tokens: int | None = Field(default=None, ge=8, le=1024)
    max_tokens: int = Field(default=1024, ge=8, le=8192)

    @model_validator(mode="after")
    def _checks_something(self) -> Question:
        if not self.contains and self.json_schema is None and self.tool is None and self.exact_tokens is None:
            raise broken_rule("give at least one check: contains, json_schema, tool, exact_tokens")
        if (self.tool is None) != (not self.tools):
            raise broken_rule("tools declares what tool must be called: give both or neither", "tool")
        return self


class Answers(Strict):
    """A set of questions by name. `time_limit_s`: for one reply. `source`: why these."""

    questions: dict[str, Question] = Field(min_length=1)
    time_limit_s: int = Field(default=120, ge=5)
    source: str
    verified: str = "unverified on hardware"
