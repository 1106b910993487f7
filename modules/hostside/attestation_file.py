"""Where the attestation of an image lies on its host."""

from __future__ import annotations

import re
from pathlib import Path

STATE = Path("/var/lib/tinderbox")


def attestation_file(reference: str, root: Path = STATE) -> Path:
    """What was seen in the image of that name. `root` differs from the host's only in tests."""
    return root / "attestations" / (re.sub(r"[^A-Za-z0-9._-]+", "-", reference) + ".json")
