"""Which releases of a service stay startable: their images, weights and caches are kept.

The one in force and the last good one always; with `keep` in /etc/tinderbox/services.json (the fleet file's `keep: n`)
the newest n that were ever good. Others keep their entry in the ledger, and can be had again by a deploy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import release_story as story
    from modules.hostside.atomic import read_json
    from modules.hostside.ledger import SETTINGS, STATE, Ledger
else:
    import release_story as story
    from atomic import read_json
    from ledger import SETTINGS, STATE, Ledger

CURRENT, LAST_GOOD, BEFORE = "current", "last-good", "good before"
_GOOD = {story.GOOD, story.PROVED_AGAIN}


@dataclass(frozen=True)
class Kept:
    """`why`: `current`, `last-good` or `good before`. `entry`: None where that of a linked release can not be read."""

    service: str
    release: str
    why: str
    entry: Mapping[str, Any] | None

    @property
    def content(self) -> Mapping[str, Any]:
        """What the release consists of."""
        return (self.entry or {}).get("release") or {}

    @property
    def models(self) -> list[tuple[str, str]]:
        """Repository and commit of its model, and of its draft model."""
        pairs = (("model", "commit"), ("draft", "draft_commit"))
        return [(str(self.content[name]), str(self.content[key])) for name, key in pairs if self.content.get(name)]


def wished(settings: Path | None = None) -> dict[str, int]:
    """Service → how many are kept, where the fleet file says."""
    found = (read_json((settings or SETTINGS) / "services.json") or {}).get("keep")
    return {str(name): int(count) for name, count in found.items()} if isinstance(found, dict) else {}


def kept_of(ledger: Ledger, count: int = 1) -> list[Kept]:
    """Those of one service, each once, the most needed first."""
    found: dict[str, Kept] = {}
    for why in (CURRENT, LAST_GOOD):
        link = ledger.directory / why
        if link.is_symlink():
            release = ledger.linked(why) or ""
            found.setdefault(release, Kept(ledger.service, release, why, ledger.entry(release)))
    for release, entry in _good(ledger)[: count if count > 1 else 0]:
        found.setdefault(release, Kept(ledger.service, release, BEFORE, entry))
    return list(found.values())


def _good(ledger: Ledger) -> list[tuple[str, dict[str, Any]]]:
    """Those that were ever good and were not found bad since, the one that was so last first."""
    times = {}
    for path in ledger.directory.glob("*.json"):
        entry = None if path.is_symlink() else ledger.entry(path.stem)
        good = [str(event.get("at")) for event in story.events(entry) if event.get("event") in _GOOD]
        if entry is not None and good and story.standing(entry) != story.BAD:
            times[path.stem] = (max(good), entry)
    return [(release, entry) for release, (_, entry) in sorted(times.items(), key=lambda one: one[1][0], reverse=True)]


def kept(root: Path = STATE, settings: Path | None = None) -> list[Kept]:
    """Those of all services of the host."""
    counts = wished(settings)
    ledgers = [Ledger(path.name, root) for path in sorted((root / "ledger").glob("*/"))]
    return [one for ledger in ledgers for one in kept_of(ledger, counts.get(ledger.service, 1))]


def unread(releases: Iterable[Kept]) -> list[str]:
    """Services with a release of which it can not be read what it needs: so nothing of theirs may go."""
    return sorted({one.service for one in releases if not one.content})
