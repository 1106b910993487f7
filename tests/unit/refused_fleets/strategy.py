"""Strategies that are refused."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

_FLEET = """\
fleet: office
strategy: {{{strategy}}}
groups: {{west: {{}}, east: {{}}}}
hosts: {{spark-1: {{}}, spark-2: {{groups: [west]}}, spark-3: {{}}}}
"""


def _with(strategy: str) -> str:
    return _FLEET.format(strategy=strategy)


REFUSALS = (
    refusal(
        "a strategy with an unknown key",
        _with("batches: 25%"),
        (2, "strategy.batches", "unknown key; did you mean batch?"),
    ),
    refusal(
        "a canary that is no number and no list",
        _with("canary: first"),
        (
            2,
            "strategy.canary",
            "neither a number of hosts nor a list of names; write 1, 0 for none, or hosts and groups",
        ),
    ),
    refusal("a canary below none", _with("canary: -1"), (2, "strategy.canary", "neither a number of hosts nor a list")),
    refusal(
        "a canary of no hosts", _with("canary: []"), (2, "strategy.canary", "neither a number of hosts nor a list")
    ),
    refusal(
        "a canary that is no host",
        _with("canary: [spark-4]"),
        (2, "strategy.canary[0]", "no host or group 'spark-4' in this fleet; did you mean spark-"),
    ),
    refusal(
        "canaries that are all hosts",
        _with("canary: 3"),
        (2, "strategy.canary", "a bad release reaches all of them at once; name fewer"),
    ),
    refusal(
        "all hosts by name as canaries",
        _with("canary: [all]"),
        (2, "strategy.canary", "a bad release reaches all of them at once; name fewer"),
    ),
    refusal(
        "a canary of nobody",
        _with("canary: [spark-1, east]"),
        (2, "strategy.canary[1]", "no host is in group 'east'; put one in it, or name another"),
    ),
    refusal(
        "all hosts by a group as canaries",
        _with("canary: [west, spark-1, spark-3]"),
        (2, "strategy.canary", "with every host as a canary (3 of 3)"),
    ),
    refusal(
        "a batch of nothing",
        _with("batch: 0"),
        (2, "strategy.batch", "has not the right form; write a number of hosts, as 4, or a share of them, as 25%"),
    ),
    refusal("a batch of more than all", _with("batch: 120%"), (2, "strategy.batch", "more than all hosts; write 1%")),
    refusal("fewer failures than none", _with("max_failures: -1"), (2, "strategy.max_failures", "must be at least 0")),
    refusal(
        "a soak without a unit",
        _with("soak: 10"),
        (2, "strategy.soak", "has not the right form; write a number with s, m or h, as in 10m, or 0"),
    ),
    refusal("a soak of days", _with("soak: 48h"), (2, "strategy.soak", "longer than a day")),
)
