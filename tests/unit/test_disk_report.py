"""What disks hold, in words, and which command would free how much."""

from __future__ import annotations

import json
from typing import Any

from modules.reporting.disk import disk_lines, document, ways

GIB = 1 << 30
FOUND: dict[str, Any] = {
    "disks": [{"path": "/", "paths": ["/", "/var/lib/docker"], "total": 100 * GIB, "free": 9 * GIB}],
    "docker": True,
    "images": [
        {"name": "tinderbox/a:1", "bytes": 3 * GIB, "whose": "ours", "needed": [], "base": False},
        {"name": "tinderbox/b:1", "bytes": 4 * GIB, "whose": "ours", "needed": ["gpt-oss (current)"], "base": False},
        {"name": "python:3.11", "bytes": GIB, "whose": "ours", "needed": [], "base": True},
        {"name": "mine:1", "bytes": 5 * GIB, "whose": "others'", "needed": [], "base": False},
    ],
    "build_cache": {"ours": 2 * GIB, "others": GIB},
    "weights": [
        {"revision": "o/n@a", "home": "/h", "bytes": 7 * GIB, "whose": "ours", "needed": []},
        {"revision": "o/n@b", "home": "/h", "bytes": 8 * GIB, "whose": "ours", "needed": ["the fleet file wants it"]},
        {"revision": "x/y", "home": "/h", "bytes": 9 * GIB, "whose": "others'", "needed": []},
    ],
    "partial": [{"path": "/h/hub", "bytes": GIB, "what": "1 downloads that are not whole"}],
    "caches": [{"path": "/c/old", "name": "old", "bytes": GIB, "whose": "ours", "needed": []}],
    "rest": {"tools": GIB, "jobs": 10},
    "stale_layers": GIB,
    "releases": [{"service": "gpt-oss", "release": "r1", "why": "current", "lacks": []}],
    "owned": [{"home": "/h", "owner": "ana", "files": 3, "bytes": GIB, "linked": 1, "examples": ["/h/hub/x"]}],
}
EMPTY: dict[str, Any] = FOUND | {
    "images": [], "build_cache": {"ours": 0, "others": 0}, "weights": [], "partial": [], "caches": [], "rest": {},
    "stale_layers": 0, "releases": [], "owned": [],
}  # fmt: skip


def test_only_what_is_ours_and_needed_by_nothing_would_be_freed() -> None:
    found = [(way.command.split("  ")[0], way.bytes // GIB) for way in ways(FOUND, "spark-1")]
    assert found == [
        ("pyinfra inventory.py deploys/clean_weights.py -y --limit spark-1", 7),
        ("pyinfra inventory.py deploys/prune.py -y --limit spark-1", 5),
        ("make remove LAYERS=images CONSENT=1 LIMIT=spark-1", 2),
    ]
    assert ways(EMPTY, "spark-1") == []


def test_every_kind_is_told_with_who_needs_it() -> None:
    text = "\n".join(disk_lines(FOUND, "spark-1"))
    for part in (
        "disk of /, /var/lib/docker: 9.0 GiB free of 100.0 GiB",
        "4.0 GiB  tinderbox/b:1: needed: gpt-oss (current)",
        "3.0 GiB  tinderbox/a:1: no release needs it",
        "mine:1: not of Tinderbox",
        "build cache: 2.0 GiB of builds of ours, 1.0 GiB of others'",
        "o/n@b: needed: the fleet file wants it",
        "beside them: tools 1.0 GiB",
        "gpt-oss r1: current",
        "/h: 3 files belong to root, and not to ana (1 of them have another name elsewhere, and stay), as /h/hub/x",
        "make disk REPAIR=owner",
    ):
        assert part in text
    assert "nothing of Tinderbox is there that nothing needs" in "\n".join(disk_lines(EMPTY, "spark-1"))
    assert "of images and build cache nothing is known" in "\n".join(disk_lines(EMPTY | {"docker": False}, "spark-1"))


def test_no_repair_is_named_that_would_change_nothing() -> None:
    owned = {**FOUND["owned"][0], "linked": 3}
    assert "REPAIR" not in "\n".join(disk_lines(FOUND | {"owned": [owned]}, "spark-1"))


def test_as_json_it_has_all_of_it_and_the_commands() -> None:
    told = json.loads(json.dumps(document("spark-1", FOUND)))
    assert (told["host"], told["ways"][0]["bytes"]) == ("spark-1", 7 * GIB)
