"""What pyinfra's `--json` says of a run. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field


class NoResultsError(Exception):
    """pyinfra ended without results: every host failed, or the run was aborted."""


@dataclass(frozen=True)
class Outcome:
    """Per host, the names of operations that changed it (or would, in a dry run) and that failed on it.

    A host that failed before its first operation has none there. What pyinfra says of a dry run names no failed host.
    `refused`: those that a dry run knows to fail; they change nothing.
    """

    operations: int
    changed: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)
    refused: dict[str, list[str]] = field(default_factory=dict)


def parse_outcome(text: str, *, dry: bool) -> Outcome:
    """Read the JSON document that `pyinfra --json` writes to standard output.

    Raises `NoResultsError` when there is none: pyinfra prints nothing when a run is aborted.
    """
    try:
        document = json.loads(text)
        plan, results = document["plan"], document["results"]
    except (ValueError, KeyError, TypeError) as error:
        raise NoResultsError("pyinfra ended without results") from error
    changed: dict[str, list[str]] = {}
    failed: dict[str, list[str]] = {}
    if dry:
        for operation in plan:
            for host in operation["hosts_with_change"]:
                changed.setdefault(host, []).append(operation["name"])
        return Outcome(operations=len(plan), changed=changed)
    if results is None:
        raise NoResultsError("pyinfra ended before it ran anything")
    for operation in results["operations"]:
        for host in operation["success"]:
            changed.setdefault(host, []).append(operation["name"])
        for host in operation["error"]:
            failed.setdefault(host, []).append(operation["name"])
    for host in results["failed_hosts"]:
        failed.setdefault(host, [])
    # An operation that a failed host never reached counts as an error in pyinfra's table; the first one is the cause.
    failed = {host: names[:1] for host, names in failed.items()}
    return Outcome(operations=len(results["operations"]), changed=changed, failed=failed)
