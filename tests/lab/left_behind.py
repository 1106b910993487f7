"""Two snapshots of a host (host_snapshot.py) against the list of what a removal leaves (docs/left-behind.yaml)."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from modules.lab.layout import ROOT

LIST = ROOT / "docs" / "left-behind.yaml"


def allowed(path: Path = LIST) -> list[dict[str, Any]]:
    """`what`: in words, as docs/remove.md has it; `kind`: of the snapshot's; `patterns`: of names."""
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text())["left_behind"]
    return found


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """`kind name: how it differs`, sorted."""
    found = []
    for kind in ("files", "units", "sysctls"):
        was, now = before[kind], after[kind]
        for name in sorted({*was, *now}):
            if was.get(name) != now.get(name):
                found.append(f"{kind} {name}: {was.get(name)} → {now.get(name)}")
    for kind in ("loaded", "users", "groups", "packages"):
        found += [f"{kind} {one}: gone" for one in sorted(set(before[kind]) - set(after[kind]))]
        found += [f"{kind} {one}: new" for one in sorted(set(after[kind]) - set(before[kind]))]
    for kind, was in before["docker"].items():
        found += [f"docker {kind} {one}: gone" for one in sorted(set(was) - set(after["docker"][kind]))]
        found += [f"docker {kind} {one}: new" for one in sorted(set(after["docker"][kind]) - set(was))]
    return found


def not_allowed(found: Iterable[str], entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """Those that the list does not have."""
    patterns = [f"{entry['kind']} {pattern}: *" for entry in entries for pattern in entry["patterns"]]
    return [line for line in found if not any(fnmatch.fnmatchcase(line, pattern) for pattern in patterns)]
