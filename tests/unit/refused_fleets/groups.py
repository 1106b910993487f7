"""What a fleet file must not say of groups, and layers that hide each other."""

from __future__ import annotations

from tests.unit.refused_fleets.refusal import refusal

REFUSALS = (
    refusal(
        "unknown group",
        """\
        fleet: office
        groups:
          big-memory: {weights: {workers: 4}}
        hosts:
          spark-1:
            groups:
              - big-memory
              - bigmemory
        """,
        (8, "hosts.spark-1.groups[1]", "unknown group 'bigmemory'; did you mean big-memory?"),
    ),
    refusal(
        "unknown group where there are none",
        """\
        fleet: office
        hosts: {spark-1: {groups: [big]}}
        """,
        (2, "hosts.spark-1.groups[0]", "unknown group 'big'; there are no groups here"),
    ),
    refusal(
        "a group's name that pyinfra gives away",
        """\
        fleet: office
        groups: {all: {}}
        hosts: {spark-1: {}}
        """,
        (2, "groups.all", "the name all is taken: pyinfra gives it to every host; choose another name"),
    ),
    refusal(
        "a group that is named like a host",
        """\
        fleet: office
        groups: {spark-1: {}}
        hosts: {spark-1: {}}
        """,
        (2, "groups.spark-1", "the name spark-1 is taken: a host has it (line 3); choose another name"),
    ),
    refusal(
        "an error in a group that no host uses",
        """\
        fleet: office
        groups:
          unused:
            weights: {home: relative/path}
        hosts: {spark-1: {}}
        """,
        (4, "groups.unused.weights.home", "has not the right form; write an absolute path without spaces"),
    ),
    refusal(
        "an error that every host's own settings hide",
        """\
        fleet: office
        defaults:
          weights: {workers: 0}
        hosts:
          spark-1: {settings: {weights: {workers: 4}}}
        """,
        (3, "defaults.weights.workers", "out of range: must be at least 1"),
    ),
)
