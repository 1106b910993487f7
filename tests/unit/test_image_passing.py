"""Who makes an image in a run, and who gets it from whom."""

from __future__ import annotations

import pytest

from modules.images.passing import Passing, common_builder, passing, sharing


@pytest.mark.parametrize(
    ("has", "named", "builder", "receivers"),
    [
        ({"a": False, "b": False, "c": False}, None, "a", ("b", "c")),
        ({"a": False, "b": False, "c": False}, "c", "c", ("a", "b")),
        ({"a": False, "b": True, "c": False}, None, "b", ("a", "c")),
        ({"a": False, "b": True, "c": True}, None, "b", ("a",)),
        ({"a": False, "b": True, "c": True}, "c", "c", ("a",)),
        # Nobody waits for a long build while somebody has the image.
        ({"a": False, "b": True, "c": False}, "c", "b", ("a", "c")),
        # The named one can not be reached, or is not in this run.
        ({"a": False, "b": False}, "gone", "a", ("b",)),
        ({"a": True, "b": True}, None, "a", ()),
        ({"a": False}, None, "a", ()),
        ({"a": False}, "b", "a", ()),
    ],
)
def test_who_makes_it_and_who_gets_it(
    has: dict[str, bool], named: str | None, builder: str, receivers: tuple[str, ...]
) -> None:
    assert passing(has, named) == Passing(builder, receivers)


def test_sites_with_builders_of_their_own_do_not_mix() -> None:
    named = {"a": "a", "b": "a", "c": None, "d": "c", "e": None}

    assert [common_builder(host, named) for host in named] == ["a", "a", "c", "c", None]
    assert sharing("b", named, named) == ["a", "b"]
    assert sharing("c", named, named) == ["c", "d"]
    assert sharing("e", named, named) == ["e"]
