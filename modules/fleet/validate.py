"""Check trees against the spec's models, and give what is wrong its place."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from modules.fleet.problem import Key, Problem
from modules.fleet.tree import Tree, find
from modules.fleet.wording import worded
from modules.spec.base import NAMED, WRITTEN_OUT

M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], tree: Tree) -> M | list[Problem]:
    """Make the model from the tree, or tell all that is wrong."""
    try:
        return model.model_validate(tree.plain())
    except ValidationError as error:
        return [_problem(detail, model, tree) for detail in error.errors(include_url=False, include_input=False)]


def layer_problems(model: type[BaseModel], tree: Tree) -> list[Problem]:
    """Tell what is wrong with a layer by itself, which other layers may complete."""
    try:
        model.model_validate(tree.plain())
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        return [_problem(detail, model, tree) for detail in details if not _may_be_completed(detail, tree)]
    return []


def _may_be_completed(detail: ErrorDetails, tree: Tree) -> bool:
    if detail["type"] == "missing":
        return True
    if detail["type"] not in {"rule", "value_error"}:
        return False
    # A rule between several keys: the other layers may bring the missing one.
    return find(tree, _key(detail, tree)).tree.keys is not None


def _problem(detail: ErrorDetails, model: type[BaseModel], tree: Tree) -> Problem:
    key = _key(detail, tree)
    what, todo = worded({**detail, "loc": key}, model)
    if detail["type"] == "rule":
        key = (*key, *detail["ctx"]["key"])
    return Problem(find(tree, key).origin, what, todo)


def _key(detail: ErrorDetails, tree: Tree) -> Key:
    """Leave out of an error's path what stands in no file: the choices of a union, the marks of a mapping's key."""
    key: list[str | int] = []
    for part in detail["loc"]:
        here = find(tree, tuple(key))
        known = not here.rest and here.tree.child(part) is not None
        if known or part not in {NAMED, WRITTEN_OUT, "[key]"}:
            key.append(part)
    return tuple(key)
