"""A recipe of another project, whatever its form, in the words that converting needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# `server`: no recipe at all, but a server that runs.
Form = Literal["spark-vllm-docker", "sparkrun", "spark-pulse", "server"]
Document = Mapping[str, Any]


class NoRecipeError(ValueError):
    """The file is no recipe of a form that is known; the text says what it lacks."""


class RefusedError(ValueError):
    """Nothing of ours could serve what the recipe describes; the text says why."""


@dataclass(frozen=True)
class SourceRecipe:
    """What a recipe says.

    `engine`: as its project names it; None: by its command. `command`: a template with `{name}` for `parameters`, in
    which doubled braces stand for single ones where `doubled`. `arguments`: flags without the program before them, in
    place of a command. `nodes`: the fewest that it allows; `solo`: it may also run on one. `left`: what of it can not
    be carried over, each a line for people.
    """

    form: Form
    name: str
    model: str
    command: str | None = None
    arguments: tuple[str, ...] = ()
    doubled: bool = False
    engine: str | None = None
    revision: str | None = None
    parameters: Document = field(default_factory=dict)
    environment: Document = field(default_factory=dict)
    image: str | None = None
    nodes: int = 1
    solo: bool = True
    task: Literal["generate", "embed", "rerank"] = "generate"
    left: tuple[str, ...] = ()
