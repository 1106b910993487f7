"""Two looks at an engine's counters → what it does now."""

from __future__ import annotations

from typing import Any

import pytest

from modules.hostside.engine_sample import figures
from modules.status.rates import rates
from modules.status.times import ago, span


def look(at: float, **told: float | None) -> dict[str, Any]:
    return {"at": at, "figures": told}


def test_tokens_a_second_are_of_the_time_between_the_looks() -> None:
    found = rates([look(3.0, generation_tokens=100.0), look(3.4, generation_tokens=120.0, requests_running=1.0)])
    assert (found["tokens_s"], found["window_s"], found["running"], found["waiting"]) == (50.0, 0.4, 1, None)


def test_an_engine_that_was_started_again_meanwhile_has_no_known_rate() -> None:
    assert rates([look(0, generation_tokens=100.0), look(1, generation_tokens=3.0)])["tokens_s"] is None


def test_an_engine_that_does_not_count_has_no_known_rate() -> None:
    assert rates([look(0, generation_tokens=None), look(1, generation_tokens=None)])["tokens_s"] is None


@pytest.mark.parametrize("looks", [[], [None], [look(1, requests_running=2.0), None], [look(1), look(1)]])
def test_without_two_looks_there_is_no_rate(looks: list[Any]) -> None:
    assert "tokens_s" not in rates(looks)


def test_an_engine_tells_its_gauges_and_its_counters_at_once() -> None:
    found = figures("vllm:num_requests_running 2.0\nvllm:generation_tokens_total 12.0\n")
    assert (found["requests_running"], found["generation_tokens"], found["requests_waiting"]) == (2.0, 12.0, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (5400, "1 h 30 min"), (90000, "1 d 1 h")],
)
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_moments_of_another_form_are_shown_as_they_are() -> None:
    assert ago("2026-11-29T22:00:00Z", "2026-11-30T00:00:00Z") == "2 h 0 min"
    assert ago("long ago", "2026-11-30T00:00:00Z") == "long ago"
