"""The releases of a service as people read them: which, when, how they stand, what they reached, what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modules.facts.releases import ServiceHistory
from modules.hostside.release_story import PROVED_AGAIN
from modules.hostside.version_changes import IMAGE, PARTS, Versions

Content = Mapping[str, Any]

_LONGEST = 60
_SHOWN_RESTARTS = 3


@dataclass(frozen=True)
class Row:
    """One release. `state`: in words. `verdict` and `figure`: of its last gate. `changed`: against the one before.

    `restarts`: by us, while it served, and why.
    `proved_on`: the versions of its machine when it was last found good; `again`: each time that this was after an
    upgrade, with what that was.
    """

    id: str
    when: str
    by: str
    state: str
    verdict: str
    figure: str
    changed: tuple[str, ...]
    restarts: tuple[str, ...] = ()
    proved_on: str = ""
    again: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """For the terminal."""
        head = f"{self.id}  {self.when}  {self.state}"
        gate = f"{self.verdict}{f' ({self.figure})' if self.figure else ''}"
        rest = [f"gate: {gate}"] if self.verdict else []
        rest += [f"by: {self.by}"] if self.by else []
        rest += [f"restarted: {one}" for one in self.restarts]
        rest += [f"changed: {one}" for one in self.changed]
        rest += [f"proved on: {self.proved_on}"] if self.proved_on else []
        rest += [f"proved again: {one}" for one in self.again]
        return [head, *(f"    {line}" for line in rest)]


def state_of(release: Mapping[str, Any], current: str | None, last_good: str | None, active: str) -> str:
    """How a release of `history_state.py` stands."""
    name, standing, events = release["id"], release.get("standing"), release["events"]
    words = []
    if name == current:
        words.append("in force" if active == "active" else f"in force, its unit is {active}")
    if name == last_good:
        words.append("last good")
    failed = release.get("failure")
    if failed is not None:
        words.append(f"{failed['event']}: {failed['note']}" if failed.get("note") else str(failed["event"]))
        words += [f"since it was good: {failed['changed']}"] if failed.get("changed") else []
        words += [str(events[-1].get("note"))] if events[-1]["event"] == "rolled back" else []
    elif name == current and name != last_good:
        words.append({"ready": "awaits its gate", "trying": "is being started"}.get(str(standing), "not judged"))
    elif not words:
        words.append("was good" if standing == "good" else "never judged")
    return "; ".join(words)


def differences(former: Content | None, content: Content) -> tuple[str, ...]:
    """What of a release is another thing than in the one before it; nothing is told of the first."""
    if former is None:
        return ()
    found = [f"{key}: {former.get(key)} → {content.get(key)}" for key in _PLAIN if former.get(key) != content.get(key)]
    found += _flags(former.get("command") or (), content.get("command") or ())
    for key in ("environment", "encodings", "secrets"):
        found += _entries(key, former.get(key) or {}, content.get(key) or {})
    if not found and former.get("unit") != content.get("unit"):
        found.append("the unit's text")
    if former.get("watch", "") != content.get("watch", ""):
        found.append("how it is watched")
    return tuple(one if len(one) <= 2 * _LONGEST else f"{one[: 2 * _LONGEST]}…" for one in found)


def versions_in(proved_on: Versions) -> list[str]:
    """Part and version of what is known and there; the image is told of elsewhere."""
    left_out = {None, "none"}
    known = [(part, proved_on.get(part)) for part in PARTS if part != IMAGE]
    return [f"{part} {version}" for part, version in known if version not in left_out]


_PLAIN = ("engine", "profile", "image", "model", "commit", "draft", "draft_commit")


def _flags(former: Sequence[str], command: Sequence[str]) -> list[str]:
    before, now = _by_flag(former), _by_flag(command)
    return _entries("", before, now)


def _by_flag(command: Sequence[str]) -> dict[str, str]:
    """Flag → its values in one text; what stands before the first flag is not told: it follows from model and image."""
    found: dict[str, list[str]] = {}
    flag = None
    for word in command:
        if word.startswith("-") and not word[1:2].isdigit():
            flag = word
            found[flag] = []
        elif flag is not None:
            found[flag].append(word)
    return {name: " ".join(values) for name, values in found.items()}


def _entries(what: str, former: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    names = [name for name in {**former, **now} if former.get(name) != now.get(name)]
    label = f"{what} " if what else ""
    return [f"{label}{name}: {_shown(former.get(name))} → {_shown(now.get(name))}" for name in sorted(names)]


def _shown(value: str | None) -> str:
    return "not set" if value is None else value or "set"


def _restarts(events: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The newest of them, and how many there were before."""
    told = [f"{event.get('at')}: {event.get('note')}" for event in events if event["event"] == "restarted"]
    more = (f"{len(told) - _SHOWN_RESTARTS} times before",) if len(told) > _SHOWN_RESTARTS else ()
    return (*more, *told[-_SHOWN_RESTARTS:])


def _asked_by(begun: Sequence[Mapping[str, Any]]) -> str:
    """Who last put it in force, and in which rollout and step of it."""
    event: Mapping[str, Any] = next((event for event in reversed(begun) if event.get("by")), {})
    return ", rollout ".join(str(event[name]) for name in ("by", "rollout") if event.get(name))


def rows(found: ServiceHistory, gates: Mapping[str, tuple[str, str]]) -> list[Row]:
    """The newest first. `gates`: id → verdict and figure."""
    told: list[Row] = []
    former: Content | None = None
    for release in found.releases:
        begun = [event for event in release["events"] if event["event"] in {"activated", "restored", "installed"}]
        told.append(
            Row(
                id=release["id"],
                when=str((begun or release["events"])[-1].get("at")),
                by=_asked_by(begun),
                state=state_of(release, found.current, found.last_good, found.active),
                verdict=gates.get(release["id"], ("", ""))[0],
                figure=gates.get(release["id"], ("", ""))[1],
                changed=differences(former, release["content"]),
                restarts=_restarts(release["events"]),
                proved_on=", ".join(versions_in(release.get("proved_on") or {})),
                again=tuple(
                    f"{event.get('at')}: {event.get('changed')}"
                    for event in release["events"]
                    if event["event"] == PROVED_AGAIN
                ),
            )
        )
        former = release["content"]
    return told[::-1]
