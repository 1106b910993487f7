"""What a host's disks hold, in words, and what would free how much of it by which command. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modules.reporting.progress import size

OURS = "ours"
PRUNE = "pyinfra inventory.py deploys/prune.py -y"
CLEAN = "pyinfra inventory.py deploys/clean_weights.py -y"
LEAVE_IMAGES = "make remove LAYERS=images CONSENT=1"
REPAIR = "make disk REPAIR=owner"
_SMALL = 1 << 20

Found = Mapping[str, Any]


@dataclass(frozen=True)
class Way:
    """A command, how many bytes it would free, and of what."""

    command: str
    bytes: int
    what: str

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {"command": self.command, "bytes": self.bytes, "what": self.what}


def ways(found: Found, limit: str) -> list[Way]:
    """What would free something, the most first. `limit`: the host's name, for commands that are for it alone."""
    images = _unneeded(found["images"])
    caches = _unneeded(found["caches"])
    weights = _unneeded(found["weights"])
    layers = int(found["stale_layers"])
    all_of_it = [
        Way(f"{PRUNE} --limit {limit}", _sum(images) + _sum(caches) + layers,
            _counted({"image": len(images), "cache": len(caches)}) + (" and kept layers" if layers else "")),
        Way(f"{CLEAN} --limit {limit}  (with weights.remove_unneeded: true in the fleet file)", _sum(weights),
            f"{', '.join(one['revision'] for one in weights)}: no release needs them"),
        Way(f"{LEAVE_IMAGES} LIMIT={limit}", int(found["build_cache"]["ours"]),
            "what builds of ours have left in docker's cache; the next build begins anew"),
    ]  # fmt: skip
    return sorted((way for way in all_of_it if way.bytes), key=lambda way: way.bytes, reverse=True)


def _unneeded(things: Iterable[Found]) -> list[Found]:
    return [one for one in things if one["whose"] == OURS and not one["needed"] and not one.get("base")]


def _sum(things: Iterable[Found]) -> int:
    return sum(int(one["bytes"]) for one in things)


def _counted(counts: Mapping[str, int]) -> str:
    told = [f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items() if count]
    return " and ".join(told) or "nothing else"


def disk_lines(found: Found, limit: str) -> Iterator[str]:
    """A screen: the disks, what is on them by kind, and what would free some of it."""
    for disk in found["disks"]:
        yield f"disk of {', '.join(disk['paths'])}: {size(disk['free'])} free of {size(disk['total'])}"
    if not found["docker"]:
        yield "docker does not answer: of images and build cache nothing is known"
    yield from _listed("images", found["images"], "name")
    cache = found["build_cache"]
    if cache["ours"] or cache["others"]:
        yield f"build cache: {size(cache['ours'])} of builds of ours, {size(cache['others'])} of others'"
    yield from _listed("weights", found["weights"], "revision")
    yield from _listed("compile caches", found["caches"], "path")
    rest = [f"{name} {size(count)}" for name, count in found["rest"].items() if count >= _SMALL]
    if rest:
        yield f"beside them: {', '.join(rest)}"
    for one in found["partial"]:
        yield f"{one['path']}: {size(one['bytes'])}: {one['what']}"
    yield from _releases(found["releases"])
    yield from _owned(found["owned"])
    freeing = ways(found, limit)
    yield "would be freed by" if freeing else "nothing of Tinderbox is there that nothing needs"
    yield from (f"    {size(way.bytes):>10}  {way.command}\n                {way.what}" for way in freeing)


def _listed(title: str, things: Sequence[Found], key: str) -> Iterator[str]:
    if not things:
        return
    yield f"{title}: {size(_sum(things))}"
    for one in sorted(things, key=lambda one: int(one["bytes"]), reverse=True):
        needed = f"needed: {', '.join(one['needed'])}" if one["needed"] else "no release needs it"
        told = needed if one["whose"] == OURS else ", ".join(["not of Tinderbox", *one["needed"]])
        yield f"    {size(one['bytes']):>10}  {one[key]}: {told}"


def _releases(releases: Sequence[Found]) -> Iterator[str]:
    if releases:
        yield "releases that can be started (keep in the fleet file says how many)"
    for one in releases:
        gone = f"; gone: {', '.join(one['lacks'])}" if one["lacks"] else ""
        yield f"    {one['service']} {one['release']}: {one['why']}{gone}"


def _owned(owned: Sequence[Found]) -> Iterator[str]:
    for one in owned:
        linked = f" ({one['linked']} of them have another name elsewhere, and stay)" if one["linked"] else ""
        yield (
            f"{one['home']}: {one['files']} files belong to root, and not to {one['owner']}{linked}, as "
            f"{one['examples'][0]}: {size(one['bytes'])} that {one['owner']} can not remove."
            + (f" To give them to {one['owner']}: {REPAIR}" if one["files"] > one["linked"] else "")
        )


def document(host: str, found: Found) -> dict[str, Any]:
    """For JSON: what was found, and what would free some of it."""
    return {"host": host, **found, "ways": [way.document() for way in ways(found, host)]}
