"""What has changed on a machine, and what of it a running server has yet to take up."""

from __future__ import annotations

import itertools

import pytest

from modules.hostside.version_changes import KEPT_FROM_START, changes, outdated, told

BEFORE = {
    "GPU": "NVIDIA GB10", "compute capability": "12.1", "driver": "580.95.05", "driver library": "580.95.05",
    "kernel": "6.17.0-1029-nvidia", "docker": "28.3.3", "container toolkit": "1.18.0-1", "CUDA toolkit": "13.0.1-1",
    "DGX OS": "7.3.1", "image": f"sha256:{'a' * 64}",
}  # fmt: skip
AFTER = {
    "GPU": "NVIDIA GB11", "compute capability": "12.3", "driver": "580.126.09", "driver library": "580.126.09",
    "kernel": "6.17.0-1031-nvidia", "docker": "29.1.0", "container toolkit": "1.18.1-1", "CUDA toolkit": "13.0.2-1",
    "DGX OS": "7.4.0", "image": f"sha256:{'b' * 64}",
}  # fmt: skip
# As the issue and docs/releases.md have it.
RESTARTING = {"GPU", "compute capability", "driver", "driver library", "docker", "container toolkit", "image"}
# The libraries go with their driver.
PARTS = [part for part in BEFORE if part != "driver library"]
COMBINATIONS = [set(chosen) for size in range(len(PARTS) + 1) for chosen in itertools.combinations(PARTS, size)]


def upgraded(parts: set[str]) -> dict[str, str | None]:
    now: dict[str, str | None] = {part: AFTER[part] if part in parts else version for part, version in BEFORE.items()}
    return now | ({"driver library": AFTER["driver library"]} if "driver" in parts else {})


def test_every_combination_is_told_by_name_and_restarts_what_keeps_something_of_it() -> None:
    assert KEPT_FROM_START == RESTARTING
    assert len(COMBINATIONS) == 2 ** len(PARTS)
    for parts in COMBINATIONS:
        now = upgraded(parts)
        assert set(changes(BEFORE, now)) == parts
        assert set(outdated(BEFORE, now)) == parts & RESTARTING
        # And back again.
        assert set(changes(now, BEFORE)) == parts


def test_the_words() -> None:
    now = upgraded({"driver", "docker", "image"})
    assert told(changes(BEFORE, now)) == (
        "driver 580.95.05 → 580.126.09, docker 28.3.3 → 29.1.0, image aaaaaaaaaaaa → bbbbbbbbbbbb"
    )
    assert told({}) == ""
    # A file keeps them by the alphabet.
    assert changes(dict(sorted(BEFORE.items())), dict(sorted(now.items()))) == changes(BEFORE, now)
    assert list(changes(dict(sorted(BEFORE.items())), AFTER)) == [part for part in PARTS if part in BEFORE]


def test_libraries_without_their_module_are_a_change_of_their_own() -> None:
    now = {**BEFORE, "driver library": "580.126.09"}
    assert told(outdated(BEFORE, now)) == "driver library 580.95.05 → 580.126.09"


@pytest.mark.parametrize("part", BEFORE)
def test_what_could_not_be_learned_is_no_change(part: str) -> None:
    unknown: dict[str, str | None] = {**BEFORE, part: None}
    missing = {name: version for name, version in BEFORE.items() if name != part}
    for other in (unknown, missing):
        assert changes(BEFORE, other) == changes(other, BEFORE) == {}


def test_a_part_that_comes_or_goes_is_one() -> None:
    assert told(changes({"CUDA toolkit": "none"}, {"CUDA toolkit": "13.0.2-1"})) == "CUDA toolkit none → 13.0.2-1"
