"""Which hosts go when: canary, batches, what was done already, and when a fleet does not begin or go on."""

from __future__ import annotations

from typing import Any

import pytest

from modules.rollout.plan import CANARY, Plan, Step, plan, verdict
from modules.rollout.survey import HostSurvey, Surveyed
from modules.spec.strategy import Strategy

SOAK_S = 600
OLD = 10_000.0


def to_change(name: str, wish: str = "new") -> HostSurvey:
    return HostSurvey(name, (Surveyed(name, "gpt", wish, wish, "old", turn=f"release old → {wish}"),))


def served(name: str, proved_s: float | None = OLD, wish: str = "new") -> HostSurvey:
    return HostSurvey(name, (Surveyed(name, "gpt", wish, wish, wish, proved_s=proved_s),))


def barred(name: str) -> HostSurvey:
    return HostSurvey(name, (Surveyed(name, "gpt", "new", "new", "old", barred="gate failed at noon: too slow"),))


def strategy(**keys: Any) -> Strategy:
    return Strategy.model_validate({"canary": 1, "batch": 2, "soak": f"{SOAK_S}s", **keys})


def planned(
    wish: Strategy, *told: HostSurvey, total: int | None = None, groups: dict[str, list[str]] | None = None
) -> Plan:
    return plan(wish, told, groups or {}, len(told) if total is None else total)


def hosts(made: Plan) -> list[tuple[str, ...]]:
    return [step.hosts for step in made.steps]


FIVE = [to_change(f"spark-{number}") for number in range(1, 6)]


def test_the_first_is_the_canary_and_the_others_follow_in_the_files_order_by_batches() -> None:
    made = planned(strategy(), *FIVE)
    assert [step.name for step in made.steps] == [CANARY, "batch 1 of 2", "batch 2 of 2"]
    assert hosts(made) == [("spark-1",), ("spark-2", "spark-3"), ("spark-4", "spark-5")]
    assert made.steps[0].soak == ("spark-1",)
    assert made.steps[1].told() == "batch 1 of 2: spark-2, spark-3"


@pytest.mark.parametrize(
    ("batch", "of", "size"), [("25%", 16, 4), ("25%", 3, 1), ("30%", 10, 3), ("3", 2, 3), (5, 9, 5)]
)
def test_a_share_is_of_the_fleet_and_never_more_than_it_says_but_one(batch: Any, of: int, size: int) -> None:
    assert strategy(batch=batch).batch_of(of) == size


def test_hosts_with_nothing_to_change_have_no_turn() -> None:
    made = planned(strategy(), served("spark-1"), HostSurvey("spark-2"))
    assert (made.steps, made.settled, made.to_change) == ((), ("spark-1", "spark-2"), ())


def test_a_run_that_continues_needs_no_other_canary_and_has_the_same_id() -> None:
    before = planned(strategy(), *FIVE)
    made = planned(strategy(), served("spark-1"), *FIVE[1:])
    assert made.id == before.id
    assert hosts(made) == [("spark-2", "spark-3"), ("spark-4", "spark-5")]
    # A host that did not answer changes nothing of what is rolled out.
    assert planned(strategy(), *FIVE[:-1]).id == before.id
    assert planned(strategy(), to_change("spark-1", "other")).id != before.id


def test_a_run_that_continues_waits_for_what_is_left_of_the_soak() -> None:
    made = planned(strategy(), served("spark-1", SOAK_S - 1.0), *FIVE[1:])
    assert made.steps[0] == Step(CANARY, (), ("spark-1",))
    assert hosts(made)[1:] == [("spark-2", "spark-3"), ("spark-4", "spark-5")]


def test_a_host_that_serves_something_else_is_no_canary() -> None:
    made = planned(strategy(), served("spark-1", wish="another"), *FIVE[1:])
    assert hosts(made)[0] == ("spark-2",)


def test_one_that_serves_it_without_having_passed_is_no_canary() -> None:
    assert hosts(planned(strategy(), served("spark-1", None), *FIVE[1:]))[0] == ("spark-2",)


def test_several_canaries_of_which_one_is_ahead() -> None:
    made = planned(strategy(canary=2), served("spark-1"), *FIVE[1:])
    assert hosts(made) == [("spark-2",), ("spark-3", "spark-4"), ("spark-5",)]


def test_canaries_by_name_and_by_group() -> None:
    made = planned(strategy(canary=["spark-5", "west"]), *FIVE, groups={"spark-3": ["west"], "spark-4": ["east"]})
    assert hosts(made) == [("spark-3", "spark-5"), ("spark-1", "spark-2"), ("spark-4",)]


def test_without_any_of_the_named_canaries_nothing_is_begun() -> None:
    made = planned(strategy(canary=["spark-9"]), *FIVE)
    assert "none of the canaries (spark-9)" in made.refused
    # One that is as it should be, in a change that is not for it, is there.
    assert not planned(strategy(canary=["spark-9"]), *FIVE, served("spark-9", wish="another")).refused


def test_no_canary_at_all() -> None:
    assert hosts(planned(strategy(canary=0), *FIVE[:2])) == [("spark-1", "spark-2")]


def test_nobody_waits_where_nobody_follows() -> None:
    assert planned(strategy(), FIVE[0], total=5).steps == (Step(CANARY, ("spark-1",), ()),)
    assert planned(strategy(soak="0"), *FIVE).steps[0].soak == ()


def test_what_is_not_tried_again_on_one_host_is_not_tried_on_others() -> None:
    made = planned(strategy(), barred("spark-1"), *FIVE[1:])
    assert "1 host has failed, and none may" in made.refused
    assert "spark-1: gpt: release new: gate failed at noon: too slow" in made.refused
    # Where one may fail, the next is the canary.
    allowed = planned(strategy(max_failures=1), barred("spark-1"), *FIVE[1:])
    assert (allowed.refused, hosts(allowed)[0]) == ("", ("spark-2",))


def test_a_host_of_which_one_service_is_barred_has_no_turn() -> None:
    other = Surveyed("spark-1", "embed", "a", "a", "b", turn="release b → a")
    one = HostSurvey("spark-1", (*barred("spark-1").parts, other))
    assert (one.turn, one.proved_s) == ("", None)


def test_when_the_fleet_goes_on() -> None:
    failed = {"spark-2": "gate failed"}
    batch, canary = Step("batch 1 of 2", ("spark-2", "spark-3")), Step(CANARY, ("spark-2",))
    assert verdict(strategy(), batch, {}, {}) == ""
    assert "1 host has failed, and none may" in verdict(strategy(), batch, failed, failed)
    assert verdict(strategy(max_failures=1), batch, failed, failed) == ""
    assert "2 hosts have failed, and at most 1 may" in verdict(
        strategy(max_failures=1), batch, failed, {**failed, "spark-1": "is unknown"}
    )
    # However many may fail, a canary may not.
    assert verdict(strategy(max_failures=9), canary, failed, failed) == "the canary has failed: spark-2: gate failed"
