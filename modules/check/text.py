"""A check as people read it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from modules.check.document import HostCheck, Memory, Minutes, Move

_GIB, _MIB = 2**30, 2**20
_KINDS = {"weights": "weights of {}", "image": "image {}", "encodings": "encodings {}"}


def lines_of(check: HostCheck) -> list[str]:
    """What a deploy would do with a host, below its findings; the first line has the verdict."""
    counts = {
        severity: sum(one.severity == severity for one in check.findings) for severity in ("blocked", "slow", "note")
    }
    named = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
    lines = [f"{check.verdict}{f' ({named})' if named else ''}; {_to_do(check)}"]
    for disk in check.disks:
        if disk.needs:
            needs, reserve, free = (amount(size) for size in (disk.needs, disk.reserve, disk.free))
            lines.append(f"disk {disk.mount}: {needs} needed and {reserve} in reserve, {free} free")
    lines += [f"minutes: {_minutes(one)}" for one in check.minutes]
    return lines + [f"memory: {_memory(one)}" for one in check.memory]


def amount(size: float) -> str:
    """Bytes in the unit that fits."""
    return f"{size / _GIB:.1f} GiB" if size >= _GIB / 10 else f"{size / _MIB:.1f} MiB"


def _to_do(check: HostCheck) -> str:
    starts = f"; to start: {', '.join(check.starts)}" if check.starts else ""
    return f"to move: {_moves(check.moves)}{starts}"


def _moves(moves: Sequence[Move]) -> str:
    coming = [move for move in moves if move.bytes != 0]
    if not coming:
        return "nothing"
    told = [
        f"{_KINDS[move.kind].format(move.what)} ({'size unknown' if move.bytes is None else amount(move.bytes)})"
        for move in coming
    ]
    there = len(moves) - len(coming)
    return ", ".join(told) + (f"; {there} more {'is' if there == 1 else 'are'} there already" if there else "")


def _minutes(one: Minutes) -> str:
    if one.from_ is None and one.to is None:
        return f"{one.what}: unknown ({one.source})"
    if one.from_ is None:
        return f"{one.what}: at most {one.to:g} ({one.source})"
    span = f"{one.from_:g}" if one.from_ == one.to else f"{one.from_:g} to {one.to:g}"
    return f"{one.what}: {span} ({one.source})"


def _memory(one: Memory) -> str:
    if one.claim is None or one.of is None or one.left is None:
        return f"{one.service}: unknown ({one.why})"
    left = f"{amount(one.left)} left" if one.left >= 0 else f"{amount(-one.left)} short"
    fits = "" if one.fits else ", does not fit"
    return f"{one.service} takes {amount(one.claim)} of {amount(one.of)}, {left}{fits} (by the {one.known_by})"


def summary(checks: Sequence[HostCheck]) -> Iterator[tuple[str, str]]:
    """A line a host and what the fleet has to fetch, each with its style in rich's words."""
    styles = {"ready": "green", "slow": "yellow", "blocked": "red", "unknown": "magenta"}
    for check in checks:
        known = f"; {_to_do(check)}" if check.verdict != "unknown" else ""
        found = ", ".join(dict.fromkeys(one.id for one in check.findings if one.severity != "note"))
        yield f"{check.host}: {check.verdict}{f' ({found})' if found else ''}{known}", styles[check.verdict]
        for why in check.why:
            yield f"    {why}", styles[check.verdict]
    known_hosts = [check for check in checks if check.verdict != "unknown"]
    if len(known_hosts) > 1:
        outside, between = fleet_bytes(known_hosts)
        if outside or between:
            yield f"fleet: {amount(outside)} from outside, {amount(between)} between hosts", "dim"


def fleet_bytes(checks: Sequence[HostCheck]) -> tuple[int, int]:
    """Bytes that come from outside, and those that hosts of the run give to each other, where sizes are known.

    What one host has, or fetches, the others take from it (docs/weights.md); encodings are fetched by each host.
    """
    outside = between = 0
    for what in dict.fromkeys((move.kind, move.what) for check in checks for move in check.moves):
        sizes = [move.bytes or 0 for check in checks for move in check.moves if (move.kind, move.what) == what]
        coming = sorted(size for size in sizes if size)
        if what[0] == "encodings" or not coming:
            outside += sum(coming)
        elif len(coming) < len(sizes):
            between += sum(coming)
        else:
            outside += coming[0]
            between += sum(coming[1:])
    return outside, between
