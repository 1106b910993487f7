"""Unneeded revisions are told and removed; where there are none, nothing changes."""

from __future__ import annotations

from modules.facts.unneeded_weights import UnneededRevision, UnneededWeights
from modules.operations.weights_pruned import weights_pruned
from tests.operations.stub_host import StubHost, commands_of

KEEP = ["owner/name@" + "b" * 40]


def test_a_host_without_any_is_not_changed() -> None:
    host = StubHost({UnneededWeights: [[]]})

    assert commands_of(host, weights_pruned, home="/data", keep=KEEP) == []
    assert host.asked == [(UnneededWeights, {"home": "/data", "keep": KEEP})]


def test_what_goes_is_told_with_its_size() -> None:
    host = StubHost({UnneededWeights: [[UnneededRevision(revision="owner/name@" + "a" * 40, bytes=3 << 29)]]})

    (command,) = commands_of(host, weights_pruned, home="/data", keep=KEEP)

    assert host.logged == ["no release needs owner/name@" + "a" * 40 + ": 1.50 GiB"]
    assert command.get_raw_value().endswith(f"unneeded_weights.py remove --home /data --keep {KEEP[0]}")


def test_a_host_that_does_not_answer_is_refused_alone() -> None:
    (refusal,) = commands_of(StubHost({UnneededWeights: None}), weights_pruned, home="/data", keep=[])

    assert "could not be read" in refusal.get_raw_value()
