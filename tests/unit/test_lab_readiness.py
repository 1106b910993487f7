"""When a lab host counts as up."""

from __future__ import annotations

import pytest

from modules.lab.readiness import is_settled

ACTIVE = ["active", "active", "active"]
ENGINE = "tinderbox-gpt-oss.service loaded activating start-post start gpt-oss-tiny on vllm-cpu"


@pytest.mark.parametrize(
    "lines", [["running", *ACTIVE], ["degraded", *ACTIVE], ["running", *ACTIVE, ENGINE], ["starting", *ACTIVE, ENGINE]]
)
def test_a_host_is_up_when_it_has_booted_whatever_its_engine_does(lines: list[str]) -> None:
    assert is_settled(lines)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["starting", *ACTIVE],
        ["starting", "active", "active", "inactive", ENGINE],
        ["running", "active", "active", "failed"],
        ["stopping", *ACTIVE, ENGINE],
    ],
)
def test_a_host_is_not_up_before_it_can_be_used(lines: list[str]) -> None:
    assert not is_settled(lines)
