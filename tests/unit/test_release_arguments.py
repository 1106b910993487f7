"""Flags as data → argument vector."""

from __future__ import annotations

import pytest

from modules.release.arguments import engine_command, flag_arguments
from modules.spec.engine import FlagValue

NAMES = {"model": "/hub/m", "port": "8000", "listen": "127.0.0.1", "served_as": "m"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ("--x",)),
        (False, ()),
        (0, ("--x", "0")),
        (0.7, ("--x", "0.7")),
        ("", ("--x", "")),
        ("a b", ("--x", "a b")),
        (("1", "2"), ("--x", "1", "2")),
    ],
)
def test_each_kind_of_value(value: FlagValue, words: tuple[str, ...]) -> None:
    assert flag_arguments("x", value) == words


def test_placeholders_are_filled_and_json_is_left_alone() -> None:
    command = engine_command(
        ("serve", "{model}", "--port", "{port}"), {"name": "{served_as}", "config": '{"mode": "NONE"}'}, NAMES
    )
    assert command == ("serve", "/hub/m", "--port", "8000", "--config", '{"mode": "NONE"}', "--name", "m")


def test_the_order_of_flags_in_a_file_changes_nothing() -> None:
    flags: dict[str, FlagValue] = {"b": 1, "a": True}
    assert engine_command(("x",), flags, NAMES) == engine_command(("x",), dict(reversed(flags.items())), NAMES)
