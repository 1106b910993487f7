"""To which release a rollback goes. Pure: the ledger, as it was told, is all that decides."""

from __future__ import annotations

from dataclasses import dataclass

from modules.facts.releases import ServiceReleases


@dataclass(frozen=True)
class Way:
    """Exactly one is set. `target`: the release to have back; `done`: why there is nothing to do; `refused`."""

    target: str | None = None
    done: str | None = None
    refused: str | None = None


def way_back(found: ServiceReleases, named: str | None, *, forced: bool = False) -> Way:
    """`named`: the release that an operator names; without one it is the last good one before what serves."""
    if named is not None:
        return _to_named(found, named, forced=forced)
    current = found.releases.get(found.current or "")
    if current is not None and current.put_back and found.pending is None and found.active == "active":
        told = f"release {found.current} serves, put back at {current.since}; name a release to go further back"
        return Way(done=told)
    if found.last_good not in {None, found.current}:
        return Way(target=found.last_good)
    before = [
        name for name, one in found.releases.items() if name != found.current and one.good and one.standing != "bad"
    ]
    if not before:
        return Way(refused=f"there is no good release but {found.current or 'none'}; {known(found)}")
    return Way(target=max(before, key=lambda name: str(found.releases[name].since)))


def _to_named(found: ServiceReleases, named: str, *, forced: bool) -> Way:
    wanted = found.releases.get(named)
    if wanted is None:
        return Way(refused=f"the ledger has no release {named}; {known(found)}")
    if named == found.current and found.active == "active" and found.pending is None:
        return Way(done=f"release {named} serves")
    if wanted.standing == "bad" and named != found.last_good and not forced:
        return Way(refused=f"release {named} is bad ({wanted.failure}); set TINDERBOX_FORCE=1 to have it all the same")
    return Way(target=named)


def known(found: ServiceReleases) -> str:
    """The releases of the ledger, the newest first."""
    names = sorted(found.releases, key=lambda name: str(found.releases[name].since), reverse=True)
    told = [
        f"{name} ({found.releases[name].standing}, {found.releases[name].since or 'never in force'})" for name in names
    ]
    return f"it has: {', '.join(told) or 'none'}"
