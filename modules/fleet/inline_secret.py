"""Find secrets that are written in a fleet file, where they do not belong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from modules.fleet.problem import Origin, Problem
from modules.fleet.suggest import nearest
from modules.fleet.tree import Tree
from modules.spec.secret import SecretReference

# Prefixes that their issuers chose so that scanners can find them; and a password inside an address.
_LOOKS_SECRET = re.compile(
    r"""\bhf_[A-Za-z0-9]{16,}
      | \bsk-[A-Za-z0-9_-]{16,}
      | \bnvapi-[A-Za-z0-9_-]{16,}
      | \b(ghp|gho|ghs|ghu)_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,}
      | \bglpat-[A-Za-z0-9_-]{16,}
      | \bAKIA[0-9A-Z]{16}\b
      | \bxox[abprs]-[A-Za-z0-9-]{10,}
      | \beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.
      | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----
      | ://[^/\s:@]+:[^/\s@]+@
    """,
    re.VERBOSE,
)
_NAMED_SECRET = re.compile(r"(^|[-_])(api[-_]?key|token|secret|password|passwd|private[-_]?key)$", re.IGNORECASE)
# Values under these keys go to an engine as they stand: its environment and its command line.
_HANDED_ON = frozenset({"environment", "flags"})

TODO = (
    "take it out, change it if it was ever committed, and say under secrets: where it is kept, as in "
    "{name: {env: VARIABLE}} (or file, or command)"
)


class InlineSecrets:
    """The secrets that stand in a file. `problems`: one for each, which does not hold its value."""

    def __init__(self, tree: Tree) -> None:
        found = list(_found(tree))
        # Longest first: one may be a part of another.
        self._values = sorted({value for value, _ in found if value}, key=len, reverse=True)
        self._by_origin = {problem.origin: problem for _, problem in found}
        self.problems = list(self._by_origin.values())

    def masked(self, problems: Iterable[Problem]) -> list[Problem]:
        """Add these problems to ours, without any secret's value, and without those about the same places."""
        others = [problem for problem in problems if problem.origin not in self._by_origin]
        return [self._hidden(problem) for problem in self.problems + others]

    def _hidden(self, problem: Problem) -> Problem:
        key = tuple(self._without(part) if isinstance(part, str) else part for part in problem.origin.key)
        origin = Origin(problem.origin.line, key)
        return Problem(origin, self._without(problem.what), self._without(problem.todo))

    def _without(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, "(hidden)")
        return text


Found = tuple[str, Problem]
"""A secret's value (empty where there is none to hide) and what to tell of it."""


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable or flag of that name with that value would be refused in a fleet file."""
    return _LOOKS_SECRET.search(value) is not None or _NAMED_SECRET.search(name) is not None


def _found(tree: Tree) -> Iterator[Found]:
    for secret in (declared.keys or {}).values() if (declared := tree.child("secrets")) is not None else ():
        yield from _in_place_of_a_reference(secret)
    for value in tree.walk():
        if isinstance(value.scalar, str) and _LOOKS_SECRET.search(value.scalar):
            yield value.scalar, Problem(value.origin, "a secret is written in the file", TODO)
        elif _handed_on_by_name(value):
            yield str(value.scalar), _inline(value)
        for name, child in (value.keys or {}).items():
            if _LOOKS_SECRET.search(name):
                yield name, Problem(child.origin, "a secret is written in the file", TODO)


def _in_place_of_a_reference(secret: Tree) -> Iterator[Found]:
    if secret.keys is None:
        for value in secret.walk():
            yield "" if value.scalar is None else str(value.scalar), _inline(secret)
    for key, child in (secret.keys or {}).items():
        if child.is_null:
            # `{the-secret}` reads as a mapping whose key it is.
            yield key, _inline(child)
        elif key not in SecretReference.model_fields and child.scalar is not None:
            meant = nearest(key, tuple(SecretReference.model_fields))
            misspelt = Problem(child.origin, "unknown key", f"did you mean {meant}?")
            yield str(child.scalar), misspelt if meant is not None else _inline(child)


def _inline(value: Tree) -> Problem:
    return Problem(value.origin, "a secret's value is written in the file", TODO)


def _handed_on_by_name(value: Tree) -> bool:
    key = value.origin.key
    if len(key) < 2 or key[-2] not in _HANDED_ON or not isinstance(key[-1], str):
        return False
    return isinstance(value.scalar, str | int) and not isinstance(value.scalar, bool) and _is_secret_name(key[-1])


def _is_secret_name(name: str) -> bool:
    return _NAMED_SECRET.search(name) is not None
