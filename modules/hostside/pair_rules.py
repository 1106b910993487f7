"""What a member of a service that spans hosts does next: the head's rules and a worker's. Nothing is looked at here.

The head decides; its ledger and its unit are what the workers follow. A generation is one start of the head's unit (its
invocation id). A worker's part runs for the head's generation or not at all, and the head's part ends when that of a
worker does: an engine whose other half is gone waits for it without end, and answers `/health` all the while.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

UP, DOWN, FAILED = "up", "down", "failed"
# As for engines of one host (modules/release/unit.py): a first start and two more, the pauses growing.
RESTARTS = 2
PAUSES_S = (15.0, 65.0)
SKIPPED = "exec-condition"


@dataclass(frozen=True)
class Unit:
    """A unit, by systemd's words. `job`: something is queued for it."""

    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    invocation: str = ""
    enabled: bool = False
    job: bool = False

    @property
    def state(self) -> str:
        """`up`: its engine runs or is about to. `failed` holds from the moment at which it ends by a failure."""
        if self.active in {"active", "activating"} and self.sub != "condition":
            return UP
        return FAILED if self.active == "failed" or self.result not in {"success", SKIPPED} else DOWN


@dataclass(frozen=True)
class Order:
    """What the head says. `spans`: its release in force is one of several hosts. `generation`: empty while none runs.

    `wanted`: it shall run, after a boot, too. `gave_up`: it starts no more by itself. `why`: in words, of the last end.
    """

    release: str | None = None
    spans: bool = False
    wanted: bool = False
    state: str = DOWN
    generation: str = ""
    ready: bool = False
    gave_up: bool = False
    why: str = ""


@dataclass(frozen=True)
class Report:
    """What a worker says. `generation`: for which its part was started last; `ended`: it runs no more.

    `holds`: releases in its ledger. `story`: digest of what it has from the head's ledger. `state`: of its unit.
    """

    current: str | None = None
    generation: str = ""
    ended: bool = True
    state: str = DOWN
    why: str = ""
    story: str = ""
    holds: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """As it is sent."""
        return asdict(self)


@dataclass(frozen=True)
class HeadView:
    """`workers`: of the release in force; `lost`: those not heard of for too long. `reports`: of those heard of.

    `locked`: another program starts or stops the service. `ended_s`: seconds since the part here has ended.
    `restarts`: by these rules, since somebody else has started it.
    """

    unit: Unit
    release: str | None = None
    workers: tuple[str, ...] = ()
    reports: Mapping[str, Report] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    locked: bool = False
    ended_s: float = 0.0
    restarts: int = 0


@dataclass(frozen=True)
class Step:
    """`do`: nothing, kill, start, give up; of a worker also follow, stop, enable, disable, fail. `why`: in words."""

    do: str = ""
    why: str = ""


def head_step(view: HeadView) -> Step:
    """What the head does next."""
    if not view.workers:
        return Step()
    if view.unit.state == UP:
        broken = _broken(view)
        return Step("kill", broken) if broken else Step()
    skipped = view.unit.active == "inactive" and view.unit.result == SKIPPED
    if not (view.unit.active == "failed" or skipped) or not view.unit.enabled or view.unit.job or view.locked:
        return Step()
    if not skipped and view.restarts >= RESTARTS:
        return Step("give up", f"it has failed {RESTARTS + 1} times one after the other")
    if unready(view) or (not skipped and view.ended_s < PAUSES_S[view.restarts]):
        return Step()
    return Step("start", "all hosts are there" if skipped else "all hosts are there again")


def _broken(view: HeadView) -> str:
    """Why the generation that runs can not go on."""
    for name in view.workers:
        report = view.reports.get(name)
        if name in view.lost:
            return f"{name} is not reached any more"
        if report is None:
            continue
        mine = report.generation == view.unit.invocation
        if mine and report.ended:
            return f"the part on {name} has ended: {report.why or 'nothing is known'}"
        if view.unit.active == "active" and not mine:
            return f"{name} does not run this start's part"
    return ""


def unready(view: HeadView) -> str:
    """Which worker keeps a start from being made, and by what; empty when all are there, idle, at the same release."""
    for name in view.workers:
        report = view.reports.get(name)
        if name in view.lost or report is None:
            return f"{name} is not connected"
        if view.release not in report.holds:
            return f"{name} does not have release {view.release}"
        if report.current != view.release:
            return f"{name} has release {report.current or 'none'} in force, and not {view.release}"
        if not report.ended and report.generation != view.unit.invocation:
            return f"{name} still runs a former start's part"
    return ""


@dataclass(frozen=True)
class WorkerView:
    """`order`: None while the head is not heard of; `spans`: whether what is in force here spans hosts."""

    unit: Unit
    order: Order | None
    current: str | None = None
    spans: bool = False
    generation: str = ""
    holds: tuple[str, ...] = ()
    locked: bool = False


def worker_step(view: WorkerView) -> Step:
    """What a worker does next."""
    order, runs = view.order, view.unit.state == UP
    if order is None:
        return Step("kill", "the head is not reached any more") if runs and view.spans else Step()
    if view.unit.active == "deactivating" or view.unit.job or not (order.spans or view.spans):
        return Step()
    if runs:
        return _running(view, order)
    return Step() if view.locked else _idle(view, order)


def _idle(view: WorkerView, order: Order) -> Step:
    step = Step()
    if view.current != order.release:
        if order.release in view.holds:
            step = Step("follow", f"the head has {order.release} in force")
        elif view.unit.enabled:
            step = Step("disable", "the head has a release in force that is not here")
    elif order.wanted != view.unit.enabled:
        step = Step("enable" if order.wanted else "disable", "as on the head")
    elif not order.spans:
        step = Step()
    elif order.generation and order.generation != view.generation:
        step = Step("start", f"for the head's start {order.generation}")
    elif order.gave_up and view.unit.active != "failed":
        step = Step("fail", order.why)
    return step


def _running(view: WorkerView, order: Order) -> Step:
    if order.release == view.current and order.generation == view.generation:
        return Step()
    if order.state == FAILED:
        return Step("kill", f"the head's part has ended: {order.why or 'nothing is known'}")
    return Step("stop", "the head's part was stopped" if order.state == DOWN else "the head has started anew")
