"""How a run that does not begin, or takes over, is told. Pure."""

from __future__ import annotations

from modules.spec.holder import Holder


def refused_text(fleet: str, holder: Holder | None, lock: str, *, alive: bool, now: float) -> str:
    """Why a run does not begin, and what to do. `alive`: whether the holder's own process is still there."""
    who = holder.text(now) if holder is not None else "somebody whose name is not in the lock yet"
    if holder is None:
        ended = f"end it there with Ctrl-C (its processes: fuser -v {lock})"
    elif alive:
        ended = f"end it with Ctrl-C there (or: kill -INT {holder.pid})"
    else:
        ended = f"that process is gone, but the pyinfra that it had started goes on: see fuser -v {lock}"
    return (
        f"fleet {fleet} is being changed by another run: {who}.\nOne run at a time changes a fleet: wait until it has "
        f"ended, or {ended}. Jobs on hosts outlive it, and the next run picks them up.\n"
        f"Dry runs (--dry, --drift) and reports need no lock. The lock: {lock}"
    )


def taken_over_text(holder: Holder, now: float) -> str:
    """What is said where the last holder went without giving the lock back."""
    return (
        f"an earlier run ended without notice (killed, or its machine restarted): {holder.text(now)}. "
        "This run takes over, and finishes what it left"
    )
