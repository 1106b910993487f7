"""What the docs say of a host after a removal is what the lab's test allows, and that allows nothing else."""

from __future__ import annotations

import re

import pytest

from modules.lab.layout import ROOT
from tests.lab.left_behind import allowed, differences, not_allowed

KINDS = {"files", "units", "loaded", "users", "groups", "sysctls", "packages", "docker"}
DOCKER: dict[str, list[str]] = {"images": ["a"], "cache": []}
BEFORE = {
    "files": {"/etc/a": ["file", "0o644", 0, 0, "x"], "/var/log/a": ["file", "0o644", 0, 0, "x"]},
    "units": {"a.service": "enabled"},
    "sysctls": {"vm.swappiness": "60"},
    "loaded": ["a.service"],
    "users": ["root:x:0"],
    "groups": [],
    "packages": ["a 1 ii"],
    "docker": DOCKER,
}
CHANGES: dict[str, dict[str, object]] = {
    "files /etc/a": {"files": {**BEFORE["files"], "/etc/a": ["file", "0o600", 0, 0, "x"]}},  # type: ignore[dict-item]
    "files /etc/b": {"files": {**BEFORE["files"], "/etc/b": ["folder", "0o755", 0, 0]}},  # type: ignore[dict-item]
    "units a.service": {"units": {"a.service": "disabled"}},
    "sysctls vm.swappiness": {"sysctls": {"vm.swappiness": "10"}},
    "loaded a.service": {"loaded": []},
    "users x:x:1": {"users": ["root:x:0", "x:x:1"]},
    "groups x": {"groups": ["x"]},
    "packages a 2 ii": {"packages": ["a 1 ii", "a 2 ii"]},
    "docker images b": {"docker": {**DOCKER, "images": ["a", "b"]}},
}


def test_the_docs_list_is_the_list() -> None:
    text = (ROOT / "docs" / "remove.md").read_text()
    listed = re.findall(
        r"^- (.+?)\.?$", text.partition("## What is different afterwards")[2].partition("\n## ")[0], re.M
    )
    assert listed == [entry["what"] for entry in allowed()]
    assert {entry["kind"] for entry in allowed()} <= KINDS


@pytest.mark.parametrize("named", CHANGES)
def test_any_other_difference_is_found(named: str) -> None:
    (found,) = differences(BEFORE, BEFORE | CHANGES[named])
    assert found.startswith(f"{named}: ")
    assert not_allowed([found], allowed()) == [found]


def test_what_is_listed_is_allowed() -> None:
    after = BEFORE | {"files": {"/etc/a": ["file", "0o644", 0, 0, "x"]}}
    (found,) = differences(BEFORE, after)
    assert not_allowed([found], allowed()) == []
    assert differences(BEFORE, BEFORE) == []
