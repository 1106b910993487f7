"""What a machine says of itself to whom it lets in, by one command. Pure, but for the command."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from modules.discover.announced import plain
from modules.facts.parse.dgx_release import parse_dgx_release
from modules.facts.parse.errors import ParseError

_MARK = "tinderbox-says "
# In plain sh, by a user without any right: nothing is changed, and sudo is not used.
QUESTIONS = f"""
say() {{ printf '{_MARK}%s %s\\n' "$1" "$2"; }}
say name "$(uname -n)"; say machine "$(cat /etc/machine-id 2>/dev/null)"
say product "$(cat /sys/class/dmi/id/product_name 2>/dev/null)"
say release "$(base64 -w 0 /etc/dgx-release 2>/dev/null)"
say gpu "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
"""


@dataclass(frozen=True)
class Told:
    """A machine's own word. `machine`: its machine-id. `os`: version of DGX OS. Empty: it has none, or tells none."""

    name: str
    machine: str
    model: str
    os: str
    driver: str
    gpu: str

    @property
    def is_spark(self) -> bool:
        """Whether it is a Spark, or a simulated one."""
        return "GB10" in self.gpu or "spark" in self.model.lower()


def told(text: str) -> Told | None:
    """Read the answers to `QUESTIONS`; None: it gave none."""
    said = dict(line.removeprefix(_MARK).partition(" ")[::2] for line in text.splitlines() if line.startswith(_MARK))
    if "machine" not in said:
        return None
    gpu, _, driver = said.get("gpu", "").partition(", ")
    name, version = _release(said.get("release", ""))
    words = (said.get("name", ""), said["machine"], name or said.get("product", ""), version, driver, gpu)
    # Whoever has an sshd may let everybody in, and say whatever they like.
    return Told(*(plain(word).strip() for word in words))


def _release(encoded: str) -> tuple[str, str]:
    try:
        release = parse_dgx_release(base64.b64decode(encoded).decode())
    except (ParseError, ValueError):
        return "", ""
    return release.pretty_name or release.name, release.version or ""
