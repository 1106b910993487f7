"""What all members of a service that spans hosts must know alike of its releases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import write_json
    from modules.hostside.ledger import Ledger
else:
    from atomic import write_json
    from ledger import Ledger


class Story:
    """What the ledger of a service knows of the releases that span hosts; read again only when it has changed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen: int | None = None
        self._known: dict[str, dict[str, Any]] = {}

    def entries(self) -> dict[str, dict[str, Any]]:
        """Release → its entry."""
        try:
            seen = self._ledger.directory.stat().st_mtime_ns
        except OSError:
            return {}
        if seen != self._seen:
            paths = [path for path in self._ledger.directory.glob("*.json") if not path.is_symlink()]
            found = {path.stem: self._ledger.entry(path.stem) for path in paths}
            self._known = {
                name: entry for name, entry in found.items() if entry and (entry.get("release") or {}).get("members")
            }
            self._seen = seen
        return self._known

    def members(self, release: str | None) -> tuple[str, ...]:
        """The hosts of a release, the head first; empty for one that spans none."""
        entry = self.entries().get(release or "") or {}
        return tuple(str(one["host"]) for one in (entry.get("release") or {}).get("members") or ())

    def document(self, only: Iterable[str] | None = None) -> dict[str, Any]:
        """What all members must know alike. `only`: of these releases."""
        entries = self.entries()
        names = entries if only is None else [name for name in only if name in entries]
        good = self._ledger.linked("last-good")
        return {
            "last_good": good if good in entries else None,
            "events": {
                name: [_anywhere(event) for event in entries[name].get("events") or []] for name in sorted(names)
            },
        }

    def take(self, told: dict[str, Any]) -> bool:
        """Have the head's story here. Returns whether anything changed. Raises `OSError`."""
        changed = False
        for name, events in (told.get("events") or {}).items():
            entry = self.entries().get(name)
            if entry is not None and list(map(_anywhere, entry.get("events") or [])) != events:
                write_json(self._ledger.entry_file(name), entry | {"events": events})
                changed = True
        good = told.get("last_good")
        if good is not None and good in self.entries() and self._ledger.linked("last-good") != good:
            self._ledger.point_good(good)
            changed = True
        return changed


def _anywhere(event: dict[str, Any]) -> dict[str, Any]:
    """An event without what holds on its own host alone."""
    return {name: value for name, value in event.items() if name not in {"boot", "up_s"}}


def digest(document: dict[str, Any]) -> str:
    """Of a story."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
