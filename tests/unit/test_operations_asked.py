"""What an operator asks for by environment variables."""

from __future__ import annotations

import pytest

from modules.operations.asked import (
    FORCE,
    RELEASE,
    REMOVE,
    SERVICE,
    asked_release,
    asked_removals,
    asked_service,
    forced,
)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("weights,images", {"weights", "images"}),
        (" images , weights", {"weights", "images"}),
        ("weights", {"weights"}),
        ("", set()),
        (",", set()),
        ("everything", {"everything"}),
    ],
)
def test_what_else_goes_with_a_service(written: str, read: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REMOVE, written)

    assert asked_removals() == read


@pytest.mark.parametrize(("written", "read"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_a_run_is_forced(written: str, read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCE, written)

    assert forced() is read


def test_nothing_is_asked_for_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (FORCE, RELEASE, REMOVE, SERVICE):
        monkeypatch.delenv(name, raising=False)

    assert (forced(), asked_release(), asked_removals(), asked_service()) == (False, None, frozenset(), None)


@pytest.mark.parametrize(("name", "ask"), [(SERVICE, asked_service), (RELEASE, asked_release)])
def test_a_name_is_taken_as_written_and_an_empty_one_names_nothing(
    name: str, ask: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(ask)
    monkeypatch.setenv(name, "gpt-oss")
    assert ask() == "gpt-oss"
    monkeypatch.setenv(name, "")
    assert ask() is None
