"""What the controller wants of a host that takes or gives a model's pieces."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.weights_stamp import Repository, WantedFile
else:
    from weights_stamp import Repository, WantedFile


@dataclass(frozen=True)
class Request:
    """What the controller wants of this host; see `modules/spreading/request.py`, which writes it.

    `listen`: this host's addresses for peers. `peers`: where the others listen; `takers`: those of them
    that lack something; `allowed`: all addresses that they have,
    since a route may show another one. `limit_bytes`: per second each way, 0: no limit. `share`: of the hosts that lack
    something the how-manieth this is, and how many there are.
    """

    repository: Repository
    revision: str
    commit: str
    filters: dict[str, list[str]]
    files: list[WantedFile]
    tree: dict[str, object] | None
    name: str
    piece_bytes: int
    pieces: bytes
    listen: list[str]
    port: int
    peers: list[tuple[str, int]]
    takers: list[str]
    allowed: list[str]
    limit_bytes: int
    reserve_bytes: int
    share: tuple[int, int] = (0, 1)

    @classmethod
    def read(cls, path: Path) -> Request:
        """Raises `OSError` or `KeyError`: there is none, or it is of another version."""
        found: dict[str, Any] = json.loads(path.read_text())
        return cls(
            repository=Repository(Path(found["home"]), found["repository"]),
            files=[WantedFile(**file) for file in found["files"]],
            peers=[(str(address), int(port)) for address, port in found["peers"]],
            pieces=base64.b64decode(found["pieces"]),
            share=(int(found["share"][0]), int(found["share"][1])),
            **{
                key: found[key]
                for key in (
                    *("revision", "commit", "filters", "tree", "name", "piece_bytes"),
                    *("listen", "port", "takers", "allowed", "limit_bytes", "reserve_bytes"),
                )
            },
        )
