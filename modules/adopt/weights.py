"""Which model a server has, as it lies in the cache where it looks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from modules.adopt.address import value_of
from modules.adopt.observed import Cache, Observed
from modules.spec.model import Model

_SNAPSHOT = re.compile(r".*/models--([^/]+?)--([^/]+)/snapshots/([0-9a-f]{40})(?:/(.+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHARD = re.compile(r"-\d{5}-of-(\d{5})")
# What a fleet file leaves out of a model without being told (`Model.exclude`).
_EXCLUDED = tuple(Model.model_fields["exclude"].default)


@dataclass(frozen=True)
class Stored:
    """A model in a cache. `files`: path → bytes, of the commit."""

    repository: str
    commit: str
    cache: Cache
    files: Mapping[str, int]

    @property
    def include(self) -> list[str]:
        """Patterns of exactly the files that are there, so that nothing more is fetched; shards by one pattern."""
        wanted = [path for path in sorted(self.files) if not any(fnmatchcase(path, one) for one in _EXCLUDED)]
        return list(dict.fromkeys(_SHARD.sub(r"-*-of-\1", path) for path in wanted))


def in_snapshot(path: str) -> tuple[str, str, str | None] | None:
    """(repository, commit, file) of a path in a hub cache."""
    found = _SNAPSHOT.fullmatch(path.rstrip("/"))
    return None if found is None else (f"{found[1]}/{found[2]}", found[3], found[4])


def stored(repository: str, revision: str | None, caches: Iterable[Cache]) -> Stored | None:
    """The model where the server finds it; None: in none of its caches, or not at that revision."""
    for cache in caches:
        model = cache.models.get(repository)
        if model is None:
            continue
        wish = revision or "main"
        commit = wish if _COMMIT.fullmatch(wish) else model["refs"].get(wish)
        if commit is None and revision is None and len(model["snapshots"]) == 1:
            commit = next(iter(model["snapshots"]))
        if commit in model["snapshots"]:
            return Stored(repository, str(commit), cache, model["snapshots"][commit])
    return None


def with_hub_names(server: Observed, program: str) -> list[str]:
    """The command line with the hub's name in the place of a path into a cache of it, and its commit as the revision.

    What clients call the model stays the path, where no other name was given.
    """
    words, flag = list(server.words), {"sglang": "--model-path", "llama-server": "--model"}.get(program)
    for at, word in enumerate(words):
        found = in_snapshot(word.partition("=")[2] if word.startswith("--") else word)
        if found is None or (at and words[at - 1].startswith("--") and words[at - 1] not in {"--model", flag}):
            continue
        repository, commit, file = found
        if program == "llama-server":
            words[at - 1 : at + 1] = ["--hf-repo", repository, *(["--hf-file", file] if file else [])]
            return words
        words[at] = f"{word.partition('=')[0]}={repository}" if word.startswith("--") else repository
        words += ["--revision", commit]
        if value_of(words, "served-model-name") is None:
            words += ["--served-model-name", word.partition("=")[2] if word.startswith("--") else word]
        return words
    return words


def as_stored(entry: dict[str, Any], found: Stored) -> dict[str, Any]:
    """A written out model at the commit and with the files that lie there."""
    size = sum(size for path, size in found.files.items())
    told = {**entry, "revision": found.commit}
    told["include"] = entry["include"] if entry.get("file") else found.include
    told["size_gib"] = round(max(size / 1024**3, 0.01), 2)
    return {key: told[key] for key in sorted(told, key=_order)}


def _order(key: str) -> int:
    first = ("repository", "revision", "include", "file", "size_gib")
    return first.index(key) if key in first else len(first)
