"""A rollout, step by step. What runs on hosts is given as a function, so that this can be tried without any."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from modules.rollout.plan import Plan, Step, plan, verdict
from modules.rollout.record import RolloutRecord, StepRecord
from modules.rollout.survey import HostSurvey
from modules.spec.strategy import Strategy

PREPARE, TURN, SOAK, RECHECK, ROLLBACK = (
    f"deploys/{name}.py" for name in ("prepare", "turn", "soak", "recheck", "rollback")
)
INTERRUPTED = 130


@dataclass(frozen=True)
class Ran:
    """A run over some hosts.

    `status`: as of a shell. `failed`: host → why; `untouched`: those of them that failed before their first operation.
    `told`: what hosts said of their services.
    """

    status: int
    failed: Mapping[str, str] = field(default_factory=dict)
    untouched: Collection[str] = ()
    told: Sequence[HostSurvey] = ()


class Run(Protocol):
    """Run a deploy file over hosts. `label`: of the rollout and its step, for the ledger; `service`: that one alone."""

    def __call__(  # noqa: D102
        self, deploy: str, hosts: Sequence[str], *, label: str = "", record: RolloutRecord | None = None,
        service: str = "",
    ) -> Ran: ...  # fmt: skip


@dataclass
class Rollout:
    """One rollout over `hosts` (in the fleet file's order).

    `groups`: of every host of the fleet. `refused`: host → why a dry run knows that its turn would be. `say`: tells
    people. `now`: UTC, to the second.
    """

    strategy: Strategy
    hosts: Sequence[str]
    groups: Mapping[str, Collection[str]]
    run: Run
    say: Callable[[str], None]
    now: Callable[[], str]
    by: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    status: int = 0
    record: RolloutRecord | None = None

    def go(self) -> int:
        """All of it. The exit status: 0 all hosts are as they should be; 1 some are not; 130 interrupted."""
        begun = self.now()
        prepared = self.run(PREPARE, self.hosts)
        if prepared.status == INTERRUPTED:
            return INTERRUPTED
        said = {one.name: one for one in prepared.told}
        # What is barred is told by the survey, and counts; another reason, as a taken port, is no word on a release.
        refused = {name: why for name, why in self.refused.items() if name in said and said[name].turn}
        skipped = {**refused, **prepared.failed}
        told = [said.get(name, HostSurvey(name)) for name in self.hosts if name not in skipped]
        if not told:
            return prepared.status or 1
        made = plan(self.strategy, told, self.groups, len(self.groups))
        self.record = RolloutRecord(
            id=made.id, by=self.by, begun=begun, skipped=skipped, failed=dict(made.barred or {}),
            steps=tuple(StepRecord(name=step.name, hosts=step.hosts or step.soak) for step in made.steps),
        )  # fmt: skip
        for line in announced(made, self.strategy):
            self.say(line)
        why = made.refused or self._steps(made)
        if self.status == INTERRUPTED:
            return INTERRUPTED
        return self._closed(made, why)

    def _steps(self, made: Plan) -> str:
        """Step after step; returns why the fleet stops, if it does."""
        for at, step in enumerate(made.steps):
            failed = self._step(at, step)
            if self.status == INTERRUPTED:
                return ""
            assert self.record is not None
            why = verdict(self.strategy, step, failed, self.record.failed)
            if why:
                return why
        return ""

    def _step(self, at: int, step: Step) -> dict[str, str]:
        """One step. Returns the hosts that were touched and failed."""
        assert self.record is not None
        label = f"{self.record.id}: {step.name}"
        self._note(at, begun=self.now())
        failed: dict[str, str] = {}
        if step.hosts:
            self.say(step.told())
            ran = self.run(TURN, step.hosts, label=label, record=self.record)
            if ran.status == INTERRUPTED:
                self.status = INTERRUPTED
                return {}
            failed = {name: why for name, why in ran.failed.items() if name not in ran.untouched}
            left = {name: why for name, why in ran.failed.items() if name in ran.untouched}
            self.record = self.record.model_copy(update={"skipped": {**self.record.skipped, **left}})
        missed = {*failed, *self.record.skipped}
        soaking = [name for name in step.soak if name not in missed]
        if not failed and step.is_canary and step.hosts and missed >= set(step.hosts):
            # Without it the next batch would be the first to try the release.
            failed = {name: self.record.skipped[name] for name in step.hosts}
        if soaking and not failed:
            failed = self._soak(soaking, label)
        if self.status != INTERRUPTED:
            self._note(at, ended=self.now(), failed=failed)
            self.record = self.record.model_copy(update={"failed": {**self.record.failed, **failed}})
        return failed

    def _soak(self, hosts: Sequence[str], label: str) -> dict[str, str]:
        """Watch the canary. One whose server did not last is rolled back, where its host answers."""
        assert self.record is not None
        self.say(f"soaking for {self.strategy.soak}: {', '.join(hosts)}")
        ran = self.run(SOAK, hosts, label=label, record=self.record)
        if ran.status == INTERRUPTED:
            self.status = INTERRUPTED
            return {}
        reachable = {one.name: one for one in ran.told if one.name in ran.failed}
        for host, found in reachable.items():
            for service in (part.service for part in found.parts if part.barred):
                self.say(f"{host}: {service} did not last; it is rolled back")
                if self.run(ROLLBACK, [host], label=label, service=service).status == INTERRUPTED:
                    self.status = INTERRUPTED
                    return {}
        return dict(ran.failed)

    def _note(self, at: int, **changes: object) -> None:
        assert self.record is not None
        steps = list(self.record.steps)
        steps[at] = steps[at].model_copy(update=changes)
        self.record = self.record.model_copy(update={"steps": tuple(steps)})

    def _closed(self, made: Plan, why: str) -> int:
        """Re-check the hosts that are as they should be, and tell all that answer what came of it."""
        assert self.record is not None
        done = {name for step in self.record.steps if step.ended for name in step.hosts}
        out = {*self.record.failed, *self.record.skipped}
        held = tuple(name for name in made.to_change if name not in done and name not in out)
        state = "stopped" if why else "finished"
        self.record = self.record.model_copy(update={"state": state, "why": why, "ended": self.now(), "held": held})
        # What was barred before this run is told by its own host, which also ends what was left undone there.
        failed_now = {name for step in self.record.steps for name in step.failed}
        # Nor do those come here that would get another service's release, all together and without a canary.
        out_of_turn = {*self.record.skipped, *failed_now, *made.put_off}
        hosts = [name for name in self.hosts if name not in out_of_turn]
        # Of a run in which nobody had a turn there is nothing to note: it leaves every host as it was.
        record = self.record if made.steps or why else None
        ran = self.run(RECHECK, hosts, label=f"{made.id}: re-check", record=record) if hosts else Ran(1)
        if ran.status == INTERRUPTED:
            return INTERRUPTED
        for line in [*concluded(self.record), *put_off(made)]:
            self.say(line)
        return 1 if why or out or ran.failed or ran.status != 0 else 0


def announced(made: Plan, strategy: Strategy) -> list[str]:
    """What is going to happen."""
    if not made.to_change and not made.barred:
        return [f"rollout {made.id}: no host needs a turn"]
    if made.refused:
        return [f"rollout {made.id}: not begun: {made.refused}"]
    lines = [f"rollout {made.id}: {'; '.join(step.told() for step in made.steps)}"] if made.steps else []
    if made.steps and made.steps[0].soak:
        lines.append(f"the canary serves for {strategy.soak} before others follow")
    return lines


def put_off(made: Plan) -> list[str]:
    """Hosts whose other services wait for the one that is not tried again."""
    return [f"{name}: its other services have no turn before this is mended: {(made.barred or {})[name]}"
            for name in made.put_off]  # fmt: skip


def concluded(record: RolloutRecord) -> list[str]:
    """What came of it."""
    lines = [f"rollout {record.id}: stopped: {record.why}"] if record.why else []
    if record.held:
        lines.append(f"left on the release that they served: {', '.join(record.held)}")
    lines += [f"{name}: left out, nothing of it was touched: {why}" for name, why in record.skipped.items()]
    if not lines and record.steps:
        lines = [f"rollout {record.id}: finished: {', '.join(name for step in record.steps for name in step.hosts)}"]
    return lines
