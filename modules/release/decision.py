"""What is to be done about a service: nothing, start what is there, or put a release in force and restart."""

from __future__ import annotations

from enum import Enum, auto

from modules.facts.service import Barred, ServiceState
from modules.release.files import HostFile
from modules.spec.release import Release


class Action(Enum):
    """`ATTACH`: somebody (an earlier run, the boot) has started this very release; only wait for it.

    `RESTART`: it serves, from what the machine was before an upgrade.
    """

    NOTHING = auto()
    ATTACH = auto()
    START = auto()
    RESTART = auto()
    INSTALL = auto()


def changes(release: Release, files: tuple[HostFile, ...], state: ServiceState) -> list[str]:
    """What on the host differs from the release, in words; empty when it is in force."""
    found = [f"{file.path} differs" for file in files if state.files.get(file.path) != file.sha256]
    if state.current != release.id:
        found.append(f"the ledger's current release is {state.current or 'none'}")
    if not state.unit.enabled:
        found.append("the unit is not enabled")
    if state.unit.stale:
        found.append("systemd has not read the unit")
    if state.container_release not in {None, release.id}:
        found.append(f"the running container is of release {state.container_release}")
    return found


def decide(release: Release, files: tuple[HostFile, ...], state: ServiceState, *, gated: bool = True) -> Action:
    """A release in force and active needs nothing; one in force and down needs a start; else it is installed.

    After an upgrade of the machine its gate proves it again; without one (`gated`), that it serves does.
    """
    if changes(release, files, state):
        return Action.INSTALL
    if state.unit.active == "active" and not state.unit.job:
        if state.outdated:
            return Action.RESTART
        unproved = bool(state.upgraded) and not gated
        return Action.ATTACH if unproved or _unfinished(release, state) else Action.NOTHING
    # Between two attempts systemd only waits: a start by hand saves the pause.
    if state.unit.job or (state.unit.active == "activating" and state.unit.sub != "auto-restart"):
        return Action.ATTACH
    return Action.START


def _unfinished(release: Release, state: ServiceState) -> bool:
    """Whether the program that started what is active was ended before it had noted what came of it."""
    standing, pending = state.standings.get(release.id), state.pending
    if pending is None:
        return standing in {"new", "trying"}
    if pending.release != release.id:
        return True
    # What its gate has yet to judge is left to that.
    return standing != "ready" or pending.ungated or pending.instead is not None


def turned_away(release: Release, action: Action, state: ServiceState) -> Barred | None:
    """Why the release is not tried: it failed here before, unchanged, or an operator has rolled it back.

    One that is in force all the same, with nothing under way, is left to its gate.
    """
    pending = state.pending
    if pending is not None and pending.instead == release.id:
        return Barred("withdrawn", "this moment", f"a rollback to {pending.release} is under way")
    if action is Action.NOTHING and (pending is None or pending.release != release.id):
        return None
    return state.barred.get(release.id)


def lacking(release: Release, state: ServiceState) -> list[str]:
    """What the release needs and the host has not: a running server is not stopped for a release that can not start."""
    found = []
    if not state.docker_answers:
        found.append("a dockerd that answers (stage: runtime)")
    elif state.image is None:
        found.append(f"image {release.image} (stage: image)")
    if not state.model_is_here:
        found.append(f"weights of {release.model} at {release.commit} (stage: weights)")
    if release.draft is not None and not state.draft_is_here:
        found.append(f"weights of the draft {release.draft} at {release.draft_commit} (stage: weights)")
    found += [f"{path} (stage: encodings)" for path in state.missing_encodings]
    return found
