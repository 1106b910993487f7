"""pyinfra's functions that are done again give what its own give."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import arguments, util

from modules.operations.pyinfra_speed import call_order, speed_up

OWN: list[Callable[[Any], list[int]]] = [util.get_operation_order_from_stack, call_order]


def _deep(state: Any, depth: int) -> tuple[list[int], ...]:
    if depth:
        return _deep(state, depth - 1)
    # On one line, since the lines are what is compared.
    return tuple(own(state) for own in OWN)


@pytest.mark.parametrize("filename", [__file__, None, "another.py"])
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_order_is_that_of_pyinfra(filename: str | None, depth: int) -> None:
    theirs, ours = _deep(SimpleNamespace(current_deploy_filename=filename, current_op_file_number=2), depth)
    assert ours == theirs
    assert filename != __file__ or len(ours) == depth + 3, "from this file on, and no further out"


def test_arguments_are_those_of_pyinfra(monkeypatch: pytest.MonkeyPatch) -> None:
    own = arguments.all_global_arguments
    monkeypatch.setattr(arguments, "all_global_arguments", own)
    speed_up()
    assert arguments.all_global_arguments is not own
    assert arguments.all_global_arguments() == own()
