"""A failed start's log → what the catalog knows of such failures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from modules.spec.signature import Signature


def matching(signatures: Mapping[str, Signature], log: Sequence[str]) -> dict[str, Signature]:
    """The signatures of an engine's log whose every pattern is found; those that prove something come first."""
    found = {
        name: signature
        for name, signature in signatures.items()
        if "engine" in signature.where
        and all(any(re.search(pattern, line) for line in log) for pattern in signature.patterns)
    }
    return dict(sorted(found.items(), key=lambda item: not item[1].certain))


def explain(signatures: Mapping[str, Signature], log: Sequence[str]) -> list[str]:
    """What to tell the operator, in lines: cause and remedy of each known failure that the log shows."""
    lines = []
    for name, signature in matching(signatures, log).items():
        lines.append(f"{'known failure' if signature.certain else 'possibly'} ({name}): {signature.meaning}")
        lines.append(f"    what to do: {signature.action}")
    return lines
