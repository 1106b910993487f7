"""Two of pyinfra's functions, done again for what they cost: they took a third of a run over four hosts.

Both give what pyinfra's own give (tests/unit/test_pyinfra_speed.py compares them); where another version of pyinfra has
none of that name, nothing is changed.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pyinfra
from pyinfra.api import State, arguments, operation, util


def call_order(state: State) -> list[int]:
    """The lines that lead from the deploy file to an operation's call: by them operations are put in order.

    pyinfra reads the source around every frame of the stack for it, and looks for its module among all that are
    imported.
    """
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    begin = 0
    if state.current_deploy_filename:
        found = (at for at, one in enumerate(frames) if one.f_code.co_filename == state.current_deploy_filename)
        begin = next(found, len(frames) - 1)
    lines = [state.current_op_file_number] if pyinfra.is_cli else []
    ours = [one for one in frames[begin:-1] if not one.f_code.co_filename.startswith(util.PYINFRA_INSTALL_DIR)]
    return [*lines, *(one.f_lineno for one in ours)]


def speed_up() -> None:
    """Have pyinfra use them."""
    if hasattr(operation, "get_operation_order_from_stack") and hasattr(util, "PYINFRA_INSTALL_DIR"):
        operation.get_operation_order_from_stack = call_order
    if hasattr(arguments, "all_global_arguments"):
        # What a class has for annotations, which pyinfra evaluates anew for every operation and every fact.
        known: list[tuple[str, Any]] = arguments.all_global_arguments()
        arguments.all_global_arguments = lambda: known
