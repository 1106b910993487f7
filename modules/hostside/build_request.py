"""What an image is built from, as the controller asks for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.build_memory import Need
else:
    from build_memory import Need


@dataclass(frozen=True)
class Request:
    """What is to be built; see above. `build_minutes`: from and to, as others reported."""

    tag: str
    digest: str
    base: str
    files: dict[str, str]
    size_gib: float
    need: Need
    build_minutes: tuple[float, float] | None

    @classmethod
    def read(cls, path: Path) -> Request:
        """The request at `path`."""
        found = json.loads(path.read_text())
        need = Need(found["compiler_gib"], found["keep_gib"], found["stop_services"])
        minutes = found["build_minutes"]
        same = {name: found[name] for name in ("tag", "digest", "base", "files", "size_gib")}
        return cls(**same, need=need, build_minutes=minutes and (minutes[0], minutes[1]))

    @property
    def recipe(self) -> str:
        """The recipe's name."""
        return self.tag.rpartition("/")[2].partition(":")[0]
