"""A rollout step by step, over hosts that are a table: what is run where, what is told, what is left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modules.rollout.execute import INTERRUPTED, PREPARE, RECHECK, ROLLBACK, SOAK, TURN, Ran, Rollout
from modules.rollout.record import RolloutRecord, newest, told
from modules.rollout.survey import HostSurvey, Surveyed
from modules.spec.strategy import Strategy

HOSTS = tuple(f"spark-{number}" for number in range(1, 5))
SERVES_FOR_S = 10_000.0


@dataclass
class Fleet:
    """What hosts serve. `bad`: hosts whose gate fails; `dead`: those that do not answer; `dies`: in its turn.

    `cut`: the deploy and the host in whose run the controller is interrupted. `falls`: does not last its soak.
    """

    bad: set[str] = field(default_factory=set)
    dead: set[str] = field(default_factory=set)
    dies: set[str] = field(default_factory=set)
    falls: set[str] = field(default_factory=set)
    cut: tuple[str, str] | None = None
    release: dict[str, str] = field(default_factory=lambda: dict.fromkeys(HOSTS, "old"))
    barred: dict[str, str] = field(default_factory=dict)
    ran: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    noted: dict[str, RolloutRecord] = field(default_factory=dict)
    wanted: str = "new"

    def __call__(
        self, deploy: str, hosts: Sequence[str], *, label: str = "", record: RolloutRecord | None = None,
        service: str = "",
    ) -> Ran:  # fmt: skip
        self.ran.append((deploy, tuple(hosts), label))
        if self.cut is not None and self.cut[0] == deploy and self.cut[1] in hosts:
            return Ran(INTERRUPTED)
        failed: dict[str, str] = {name: "does not answer" for name in hosts if name in self.dead}
        if record is not None:
            self.noted |= {name: record for name in hosts if name not in failed}
        untouched = set(failed)
        if deploy == PREPARE:
            return Ran(
                1 if failed else 0, failed, untouched, [self._told(name) for name in hosts if name not in failed]
            )
        if deploy == TURN:
            failed |= {name: self._turn(name) for name in hosts if name not in failed and name in self.bad | self.dies}
            self.release |= {name: self.wanted for name in hosts if name not in failed}
        if deploy == SOAK:
            down = [name for name in hosts if name in self.falls]
            failed |= dict.fromkeys(down, "was started again")
            return Ran(1 if failed else 0, failed, untouched, [self._fell(name) for name in down])
        if deploy == ROLLBACK:
            self.release[hosts[0]], self.barred[hosts[0]] = "old", "withdrawn"
        if deploy == RECHECK:
            failed |= {name: why for name, why in self.barred.items() if name in hosts}
        return Ran(1 if failed else 0, failed, untouched)

    def _turn(self, name: str) -> str:
        if name in self.dies:
            self.dead.add(name)
            return "does not answer any more"
        self.barred[name] = "gate failed"
        return "gate failed"

    def _fell(self, name: str) -> HostSurvey:
        return HostSurvey(name, (Surveyed(name, "gpt", "new", barred="was started again"),))

    def _told(self, name: str) -> HostSurvey:
        serves, barred = self.release[name] == self.wanted, self.barred.get(name, "")
        turn = "" if serves or barred else f"release {self.release[name]} → {self.wanted}"
        seen = Surveyed(
            name, "gpt", self.wanted, self.wanted, self.release[name], turn, barred, SERVES_FOR_S if serves else None
        )
        return HostSurvey(name, (seen,))

    def changed(self) -> list[tuple[str, ...]]:
        return [hosts for deploy, hosts, _ in self.ran if deploy == TURN]


def rolled(fleet: Fleet, **keys: Any) -> tuple[Rollout, int, list[str]]:
    said: list[str] = []
    strategy = Strategy.model_validate({"canary": 1, "batch": 2, "soak": "10m", **keys})
    groups: Mapping[str, list[str]] = {name: [] for name in HOSTS}
    rollout = Rollout(strategy, HOSTS, groups, fleet, said.append, lambda: "2026-11-30T12:00:00Z", by="ana@desk")
    fleet.ran.clear()
    return rollout, rollout.go(), said


def test_a_good_release_goes_everywhere_canary_first() -> None:
    fleet = Fleet()
    rollout, status, said = rolled(fleet)
    assert status == 0
    assert [(deploy, hosts) for deploy, hosts, _ in fleet.ran] == [
        (PREPARE, HOSTS),
        (TURN, ("spark-1",)),
        (SOAK, ("spark-1",)),
        (TURN, ("spark-2", "spark-3")),
        (TURN, ("spark-4",)),
        (RECHECK, HOSTS),
    ]
    assert rollout.record is not None
    assert [label for deploy, _, label in fleet.ran if deploy == TURN] == [
        f"{rollout.record.id}: {step}" for step in ("canary", "batch 1 of 2", "batch 2 of 2")
    ]
    assert "batch 1 of 2: spark-2, spark-3" in said
    assert {fleet.noted[name].state for name in HOSTS} == {"finished"}


def test_a_converged_fleet_is_looked_at_and_nothing_is_noted() -> None:
    fleet = Fleet(release=dict.fromkeys(HOSTS, "new"))
    _, status, said = rolled(fleet)
    assert (status, fleet.changed(), fleet.noted) == (0, [], {})
    assert [deploy for deploy, _, _ in fleet.ran] == [PREPARE, RECHECK]
    assert "no host needs a turn" in said[0]


def test_a_canary_that_fails_stops_the_fleet_and_the_next_run_does_not_try_it_elsewhere() -> None:
    fleet = Fleet(bad={"spark-1"})
    rollout, status, said = rolled(fleet, max_failures=3)
    assert (status, fleet.changed()) == (1, [("spark-1",)])
    assert rollout.record is not None
    assert (rollout.record.state, rollout.record.held) == ("stopped", ("spark-2", "spark-3", "spark-4"))
    assert "the canary has failed: spark-1: gate failed" in rollout.record.why
    assert fleet.noted["spark-3"].held == ("spark-2", "spark-3", "spark-4")
    assert any("left on the release that they served: spark-2, spark-3, spark-4" in line for line in said)
    again, status, said = rolled(fleet)
    assert (status, fleet.changed()) == (1, [])
    assert any("not begun: 1 host has failed" in line for line in said)
    assert again.record is not None
    assert again.record.held == ("spark-2", "spark-3", "spark-4")
    # What was left undone on the host that failed is ended by its own operation.
    assert fleet.ran[-1][:2] == (RECHECK, HOSTS)
    # Another release is another rollout.
    fleet.wanted, fleet.barred, fleet.bad = "newer", {}, set()
    assert rolled(fleet)[1] == 0
    assert set(fleet.release.values()) == {"newer"}


def test_a_host_that_dies_in_its_turn_counts_and_the_next_run_continues() -> None:
    fleet = Fleet(dies={"spark-3"})
    rollout, status, _ = rolled(fleet)
    assert rollout.record is not None
    assert (status, rollout.record.failed) == (1, {"spark-3": "does not answer any more"})
    assert rollout.record.held == ("spark-4",)
    assert "spark-3" not in fleet.ran[-1][1]
    # Still away: it was not touched by this run, and keeps nobody from going on.
    _, status, said = rolled(fleet)
    assert (status, fleet.changed()) == (1, [("spark-4",)])
    assert any(line.startswith("spark-3: left out, nothing of it was touched") for line in said)
    fleet.dead, fleet.dies = set(), set()
    _, status, _ = rolled(fleet)
    assert (status, fleet.changed()) == (0, [("spark-3",)])
    assert set(fleet.release.values()) == {"new"}


def test_so_many_hosts_may_fail() -> None:
    fleet = Fleet(bad={"spark-2"})
    rollout, status, _ = rolled(fleet, max_failures=1)
    assert status == 1
    assert rollout.record is not None
    assert (rollout.record.state, rollout.record.held) == ("finished", ())
    assert fleet.release == {"spark-1": "new", "spark-2": "old", "spark-3": "new", "spark-4": "new"}


def test_a_host_that_is_away_from_the_start_is_left_out_and_the_next_is_the_canary() -> None:
    fleet = Fleet(dead={"spark-1"})
    rollout, status, _ = rolled(fleet)
    assert (status, fleet.changed()) == (1, [("spark-2",), ("spark-3", "spark-4")])
    assert rollout.record is not None
    assert (rollout.record.state, rollout.record.skipped) == ("finished", {"spark-1": "does not answer"})


def test_a_canary_that_goes_away_before_its_turn_stops_the_fleet() -> None:
    fleet = Fleet()
    asked = fleet._told

    def lost(name: str) -> HostSurvey:
        fleet.dead.add("spark-1")
        return asked(name)

    fleet._told = lost  # type: ignore[method-assign]
    rollout, status, _ = rolled(fleet)
    assert (status, fleet.changed()) == (1, [("spark-1",)])
    assert rollout.record is not None
    assert rollout.record.held == ("spark-2", "spark-3", "spark-4")


def test_a_canary_that_does_not_last_is_rolled_back() -> None:
    fleet = Fleet(falls={"spark-1"})
    _, status, _ = rolled(fleet)
    assert (status, fleet.changed(), fleet.release["spark-1"]) == (1, [("spark-1",)], "old")
    assert (ROLLBACK, ("spark-1",)) in [(deploy, hosts) for deploy, hosts, _ in fleet.ran]
    assert rolled(fleet)[1] == 1
    assert fleet.changed() == []


def test_whatever_is_cut_the_next_run_comes_to_the_same_end() -> None:
    for cut in (PREPARE, "spark-1"), (TURN, "spark-1"), (SOAK, "spark-1"), (TURN, "spark-4"):
        fleet = Fleet(cut=cut)
        assert rolled(fleet)[1] == INTERRUPTED
        fleet.cut = None
        done = [name for name in HOSTS if fleet.release[name] == "new"]
        _, status, _ = rolled(fleet)
        assert (status, set(fleet.release.values())) == (0, {"new"})
        assert not {name for hosts in fleet.changed() for name in hosts} & set(done)


def test_a_rollback_that_is_cut_ends_the_run() -> None:
    fleet = Fleet(falls={"spark-1"}, cut=(ROLLBACK, "spark-1"))
    assert rolled(fleet)[1] == INTERRUPTED
    assert fleet.ran[-1][0] == ROLLBACK


def test_what_is_not_tried_again_brings_no_other_service_into_force_out_of_its_turn() -> None:
    fleet = Fleet(barred=dict.fromkeys(HOSTS, "gate failed"))
    asked = fleet._told

    def two(name: str) -> HostSurvey:
        other = Surveyed(name, "embedder", "b", "b", "a", turn="release a → b")
        return HostSurvey(name, (other, *asked(name).parts))

    fleet._told = two  # type: ignore[method-assign]
    for most in (0, len(HOSTS)):
        _, status, said = rolled(fleet, max_failures=most)
        # Looked at again is with all that ends a server, on all hosts at once.
        assert (status, [deploy for deploy, _, _ in fleet.ran]) == (1, [PREPARE])
        assert any(line.startswith("spark-4: its other services have no turn before this is mended") for line in said)


def test_of_several_records_the_last_written_is_told() -> None:
    first = RolloutRecord(id="a", begun="2026-11-30T10:00:00Z", ended="2026-11-30T11:00:00Z", state="stopped", why="x")
    later = RolloutRecord(id="b", begun="2026-11-30T12:00:00Z", held=("spark-4",))
    assert newest([later, first]) == later
    assert newest([]) is None
    assert told(first)[0] == "rollout a: stopped (2026-11-30T11:00:00Z): x"
    assert "held back, serving what they served: spark-4" in told(later)[1]
