"""A Dockerfile as BuildKit sees it: stages, and what each of them is made from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

LAST = "(last)"
_FROM = re.compile(r"^FROM (?P<base>\S+)(?: AS (?P<name>\S+))?$")
_OTHER = re.compile(r"(?:--from=|\bfrom=)([\w-]+)")
_COPIED = re.compile(r"^COPY (?!--from)(?P<words>.+)$")


@dataclass
class Stage:
    """`needs`: names of the stages that it copies from, mounts, or begins with."""

    name: str
    base: str
    lines: list[str] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)


def stages_of(dockerfile: str) -> dict[str, Stage]:
    """Its stages by name, in their order; the last one, which has none, is `LAST`."""
    stages: dict[str, Stage] = {}
    for line in _instructions(dockerfile):
        if found := _FROM.match(line):
            stage = Stage(found["name"] or LAST, found["base"])
            stage.needs |= {stage.base} & stages.keys()
            stages[stage.name] = stage
        elif stages:
            last = next(reversed(stages.values()))
            last.lines.append(line)
            last.needs |= set(_OTHER.findall(line)) & stages.keys()
    return stages


def identities(files: Mapping[str, str]) -> dict[str, str]:
    """Stage → hash of all that decides what is in it: its lines, the files that it copies, the stages that it needs."""
    found: dict[str, str] = {}
    arguments = [line for line in _instructions(files["Dockerfile"]) if line.startswith("ARG ")]
    for stage in stages_of(files["Dockerfile"]).values():
        parts = [stage.base, *arguments, *stage.lines, *(found[name] for name in sorted(stage.needs))]
        for line in stage.lines:
            if copied := _COPIED.match(line):
                parts += [files[name] for name in copied["words"].split()[:-1] if name in files]
        found[stage.name] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return found


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """The stages that BuildKit makes anew for the context `after` where it has made those of `before`."""
    was, now = identities(before), identities(after)
    assert was.keys() == now.keys()
    return {name for name in now if was[name] != now[name]}


def _instructions(dockerfile: str) -> list[str]:
    whole = re.sub(r"^\s*#.*\n", "", dockerfile, flags=re.MULTILINE)
    return [" ".join(line.split()) for line in whole.replace("\\\n", " ").splitlines() if line.strip()]
