"""Rollback, stop, remove: what a host is given for them, and that it is given nothing twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyinfra.api import FunctionCommand

from modules.facts.releases import HostReleases, ServiceReleases
from modules.operations.gate_memory import forget_service
from modules.operations.releases import service_removed, service_rolled_back, service_stopped
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.release_samples import service_plan
from tests.unit.test_release_rollback import HOST, MID

PLAN = service_plan(gate="lab-cpu")


@pytest.fixture(autouse=True)
def nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "me")
    for name in ("RELEASE", "FORCE", "SERVICE", "REMOVE"):
        monkeypatch.delenv(f"TINDERBOX_{name}", raising=False)


def given(found: ServiceReleases | None, operation: Any, **arguments: Any) -> tuple[StubHost, list[Any]]:
    host = StubHost({HostReleases: {"gpt-oss": found} if found is not None else {}})
    return host, commands_of(host, operation, **arguments)


def test_a_rollback_is_a_job_that_names_both_releases() -> None:
    host, (start, follow) = given(HOST, service_rolled_back, plan=PLAN)
    text = start.get_raw_value()
    assert "start_service.py gpt-oss mid --by me@" in text
    assert text.endswith("--instead new")
    assert isinstance(follow, FunctionCommand)
    assert host.logged == ["gpt-oss: from release new back to mid"]


def test_one_that_was_rolled_back_is_not_rolled_back_again() -> None:
    done = replace(HOST, current="mid", last_good="mid", releases={**HOST.releases, "mid": replace(MID, put_back=True)})
    host, commands = given(done, service_rolled_back, plan=PLAN)
    assert commands == []
    assert "release mid serves" in host.noops[0]


def test_a_named_release_is_gone_back_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINDERBOX_RELEASE", "old")
    _, (start, _) = given(HOST, service_rolled_back, plan=PLAN)
    assert "start_service.py gpt-oss old" in start.get_raw_value()
    monkeypatch.setenv("TINDERBOX_RELEASE", "r9")
    _, (refusal,) = given(HOST, service_rolled_back, plan=PLAN)
    told = refusal.get_raw_value()
    assert "spark-1: service gpt-oss can not be rolled back: the ledger has no release r9" in told
    assert "Name a release by TINDERBOX_RELEASE=" in told
    assert told.endswith("exit 1")


@pytest.mark.parametrize("operation", [service_rolled_back, service_stopped])
def test_a_host_without_the_service_is_refused(operation: Any) -> None:
    arguments: dict[str, Any] = {"plan": PLAN} if operation is service_rolled_back else {"service": "gpt-oss"}
    _, (refusal,) = given(None, operation, **arguments)
    assert "spark-1: " in refusal.get_raw_value()
    assert "its ledger has no service" in refusal.get_raw_value()


def test_a_stop_is_asked_for_once() -> None:
    _, (stop,) = given(HOST, service_stopped, service="gpt-oss")
    assert "end_service.py stop gpt-oss --by me@" in stop.get_raw_value()
    # Down, but a boot would start it.
    assert len(given(replace(HOST, active="inactive"), service_stopped, service="gpt-oss")[1]) == 1
    host, commands = given(replace(HOST, active="inactive", enabled=False), service_stopped, service="gpt-oss")
    assert (commands, host.noops) == ([], ["gpt-oss is stopped"])


def test_a_service_is_removed_once() -> None:
    _, (removal, forgotten) = given(HOST, service_removed, service="gpt-oss")
    assert "end_service.py remove gpt-oss" in removal.get_raw_value()
    assert (forgotten.function, forgotten.args) == (forget_service, ("gpt-oss",))
    host, commands = given(None, service_removed, service="gpt-oss")
    assert commands == []
    assert "gpt-oss is not on this host" in host.noops[0]


@pytest.mark.parametrize("operation", [service_rolled_back, service_stopped, service_removed])
def test_a_host_that_gives_no_answer_is_refused(operation: Any) -> None:
    arguments: dict[str, Any] = {"plan": PLAN} if operation is service_rolled_back else {"service": "gpt-oss"}
    host = StubHost({HostReleases: None})
    (refusal,) = commands_of(host, operation, **arguments)
    assert "could not be read" in refusal.get_raw_value()
