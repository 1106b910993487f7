"""Find secrets that are written in a fleet file, where they do not belong."""

from __future__ import annotations

import re
from collections.abc import Iterator

from modules.fleet.problem import Problem
from modules.fleet.tree import Tree

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


def inline_secrets(tree: Tree) -> Iterator[tuple[Tree, Problem]]:
    """Give each value that is a secret, with what to tell; the telling does not hold the value."""
    declared = tree.child("secrets")
    if declared is not None:
        yield from _declared_inline(declared)
    for value in tree.walk():
        if isinstance(value.scalar, str) and _LOOKS_SECRET.search(value.scalar):
            yield value, Problem(value.origin, "a secret is written in the file", TODO)
        elif _handed_on_by_name(value):
            yield value, Problem(value.origin, "a secret's value is written in the file", TODO)
    for value in tree.walk():
        for name in value.keys or {}:
            if _LOOKS_SECRET.search(name):
                yield Tree(value.origin, scalar=name), Problem(value.origin, "a secret is written as a key", TODO)


def _declared_inline(secrets: Tree) -> Iterator[tuple[Tree, Problem]]:
    for secret in (secrets.keys or {}).values():
        if secret.keys is None:
            yield secret, Problem(secret.origin, "a secret's value is written in the file", TODO)
        for key in ("value", "inline", "secret"):
            inner = secret.child(key)
            if inner is not None:
                yield inner, Problem(inner.origin, "a secret's value is written in the file", TODO)


def _handed_on_by_name(value: Tree) -> bool:
    key = value.origin.key
    if len(key) < 2 or key[-2] not in _HANDED_ON or not isinstance(key[-1], str):
        return False
    return isinstance(value.scalar, str | int) and not isinstance(value.scalar, bool) and _is_secret_name(key[-1])


def _is_secret_name(name: str) -> bool:
    return _NAMED_SECRET.search(name) is not None
