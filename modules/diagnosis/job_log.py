"""A failed job's last lines → those that matter, and what the catalog knows of such failures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from modules.diagnosis.bundle import Bundle, Log
from modules.diagnosis.diagnose import diagnose
from modules.diagnosis.mask import mask_lines
from modules.spec.signature import LogSource, Signature

# What docker says of each layer and of each step, whether anything is wrong or not.
_NOISE = re.compile(
    r"^(?:[0-9a-f]{12}: |[\w.-]+: Pulling from |-+$| > \[)"
    r"|^#\d+ (?:\[internal\] |sha256:|extracting |resolve |transferring |\.\.\.|DONE|CACHED|CANCELED)"
)


def matter(lines: Sequence[str], most: int) -> list[str]:
    """The last lines that say something; at most so many."""
    return [line for line in lines if line.strip() and not _NOISE.match(line)][-most:]


def causes(
    signatures: Mapping[str, Signature], kind: LogSource, lines: Sequence[str], kernel: Sequence[str] = ()
) -> list[str]:
    """What to tell the operator: each known failure that the job's lines show, the most probable first.

    `kind`: what the job's program is. `kernel`: what the kernel has logged meanwhile.
    """
    logs = (Log("log", kind, mask_lines(lines)), Log("kernel", "kernel", mask_lines(kernel)))
    told = []
    for finding in diagnose(Bundle(logs, failed=True), signatures).findings:
        told.append(f"{'known failure' if finding.certain else 'possibly'} ({finding.name}): {finding.meaning}")
        told.append(f"    what to do: {finding.action}")
    return told
