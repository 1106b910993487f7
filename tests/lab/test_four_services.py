"""Four services over three hosts behind a gateway: what befalls one, or one host, does not touch the others.

The engine is a fake in a real image; placing, lock, roles, units, ledger, memory gate, agents and HAProxy are the real
ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from modules.fleet import load_fleet
from modules.fleet.lock import read_lock
from modules.lab.model.repository import COMMIT, REPOSITORY
from tests.lab.behind_gateway import (
    GATEWAY_HOST,
    KEYS,
    changed,
    deployed,
    gateway_settings,
    service_of,
    url,
    write_keys,
)
from tests.lab.debian_packages import offered
from tests.lab.fake_release import by_hand
from tests.lab.lab_driver import Lab
from tests.lab.side_by_side import Neighbour, asked, await_backends, now, one_after_the_other

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOSTS = ("spark-1", "spark-2", "spark-3")
# What clients call each service's model.
MODELS = {"chat": "everyday", "code": "coder", "embed": "embedder", "rank": "ranker"}
ALICE = KEYS["alice-key"]


@dataclass(frozen=True)
class Four:
    """Four services, ready. `fleet`: the fleet file of all tests; others lie beside it, and have its lock."""

    lab: Lab
    fleet: Path

    def where(self, fleet: Path | None = None) -> Mapping[str, tuple[str, ...]]:
        return load_fleet(fleet or self.fleet).placements

    def services(self) -> list[Neighbour]:
        return [Neighbour(self.lab, host, name) for name, hosts in self.where().items() for host in hosts]

    def invocations(self, but: str = "") -> dict[tuple[str, str], str]:
        return {(one.host, one.name): one.invocation() for one in self.services() if one.name != but}

    def urls(self, *names: str) -> dict[str, tuple[str, str]]:
        """As clients ask these, all at the one endpoint."""
        return {name: (url(self.lab), MODELS[name]) for name in names}

    def another(self, name: str, chat: Mapping[str, str] | None = None, **more: Any) -> Path:
        """Another fleet file with the same lock. `chat`: variables of that service; `more`: further services."""
        fleet = fleet_file(self.lab, name, chat or {}, more)
        lock = self.fleet.with_suffix(".lock.yaml")
        fleet.with_suffix(".lock.yaml").write_text(lock.read_text())
        return fleet


def fleet_file(lab: Lab, name: str, chat: Mapping[str, str], more: Mapping[str, Any]) -> Path:
    secrets = write_keys(lab)

    def service(number: int, called: str, /, **keys: Any) -> dict[str, Any]:
        model = {
            "repository": REPOSITORY, "revision": COMMIT, "size_gib": 0.11, "served_as": called, "source": "for tests",
        }  # fmt: skip
        return service_of(lab, {"model": model, "port": 8060 + number, "gate": None, **keys})

    services: dict[str, Any] = {
        "chat": service(0, "chatter", replicas=2, priority=5, aliases=["everyday"]),
        "code": service(1, "coder", replicas=1),
        "embed": service(2, "embedder", on=["front"]),
        "rank": service(3, "ranker", replicas=1, on=["spark-2", "spark-3"]),
    }
    services["chat"]["environment"] |= chat
    services |= {key: service(9, key, **keys) for key, keys in more.items()}

    def change(content: dict[str, Any]) -> None:
        content |= {"fleet": "four", "secrets": secrets, "services": services, "groups": {"front": {}}}
        del content["defaults"]["services"]
        # Room for two of them each: a fake engine claims what vLLM would.
        content["defaults"]["hardware"]["memory_gib"] = 10
        content["hosts"] = {host: content["hosts"][host] for host in HOSTS}
        for host, entry in content["hosts"].items():
            entry["settings"] = {"network": {"peer_address": lab.address(host)}}
        content["hosts"][GATEWAY_HOST]["groups"] = ["front"]
        content["hosts"][GATEWAY_HOST]["settings"]["gateway"] = gateway_settings()

    return lab.write_fleet(f"four-{name}", change)


@pytest.fixture(scope="module")
def four(wide_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Four:
    fleet = fleet_file(wide_lab, "all", {}, {})
    fleet.with_suffix(".lock.yaml").unlink(missing_ok=True)
    planned = load_fleet(fleet).placements
    with offered(wide_lab, GATEWAY_HOST, "haproxy", tmp_path_factory.mktemp("haproxy")):
        run = deployed(wide_lab, fleet)
    assert run.rc == 0, run.text
    # What was shown before is what the lock has now.
    assert read_lock(fleet).placements == planned
    four = Four(wide_lab, fleet)
    await_backends(wide_lab, GATEWAY_HOST, 5)
    return four


def test_they_are_where_they_have_room_and_answer_by_model_and_alias(four: Four) -> None:
    where = four.where()
    assert {name: len(hosts) for name, hosts in where.items()} == {"chat": 2, "code": 1, "embed": 1, "rank": 1}
    assert where["embed"] == ("spark-1",)
    running = {
        host: set(four.lab.ssh(host, "sudo docker ps --format '{{.Names}}'").stdout.split()) for host in HOSTS
    }  # fmt: skip
    wanted = {host: {f"tinderbox-{name}" for name, hosts in where.items() if host in hosts} for host in HOSTS}
    assert running == wanted
    assert max(len(found) for found in running.values()) == 2
    with httpx.Client(headers={"authorization": f"Bearer {ALICE}"}, trust_env=False, timeout=60) as client:
        known = {one["id"] for one in client.get(f"{url(four.lab)}/v1/models").json()["data"]}
        assert known == {"chatter", *MODELS.values()}
        for name in known:
            body = {"model": name, "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 2}
            answer = client.post(f"{url(four.lab)}/v1/chat/completions", json=body)
            assert answer.status_code == 200, (name, answer.text)
            service = next(one for one, called in {**MODELS, "chat ": "chatter"}.items() if called == name).strip()
            assert answer.headers["x-tinderbox-host"] in where[service]


def test_a_second_run_changes_nothing_and_restarts_nothing(four: Four) -> None:
    before = four.invocations()
    run = deployed(four.lab, four.fleet)
    assert run.rc == 0, run.text
    assert changed(run) == 0, run.text
    assert four.invocations() == before


def test_a_release_and_a_rollback_of_one_leave_the_others_answering(four: Four) -> None:
    others = four.invocations(but="chat")
    fleet = four.another("changed", {"FAKE_NOTE": "another"})
    with asked(four.urls("code", "embed", "rank"), ALICE) as accounts:
        run = deployed(four.lab, fleet)
        assert run.rc == 0, run.text
        at = {name: account.completed for name, account in accounts.items()}
        back = by_hand(four.lab, "rollback", fleet, TINDERBOX_SERVICE="chat")
        assert back.rc == 0, back.text
    for name, account in accounts.items():
        assert account.lost == [], f"{name}: {account.text()}"
        assert account.completed > at[name] > 0
    assert four.invocations(but="chat") == others
    again = deployed(four.lab, four.fleet)
    assert (again.rc, changed(again)) == (0, 0), again.text


def test_a_crash_of_one_leaves_the_others_answering(four: Four) -> None:
    (host,) = four.where()["code"]
    one = Neighbour(four.lab, host, "code")
    others, before = four.invocations(but="code"), one.invocation()
    with asked(four.urls("chat", "embed", "rank"), ALICE) as accounts:
        one.kill()
        one.await_another(before)
    for name, account in accounts.items():
        assert account.lost == [], f"{name}: {account.text()}"
    assert four.invocations(but="code") == others


def test_a_boot_of_a_host_leaves_what_is_elsewhere_answering_and_starts_its_own_in_order(four: Four) -> None:
    (host,) = four.where()["rank"]
    elsewhere = [name for name, hosts in four.where().items() if host not in hosts]
    here = [one for one in four.services() if one.host == host]
    assert elsewhere
    since = now(four.lab, host)
    with asked(four.urls(*elsewhere), ALICE) as accounts:
        four.lab.restart(host)
        for one in here:
            one.await_ready()
    for name, account in accounts.items():
        assert account.lost == [], f"{name}: {account.text()}"
        assert account.completed > 0
    await_backends(four.lab, GATEWAY_HOST, 5)
    order = json.loads(four.lab.read(host, "/etc/tinderbox/services.json")).get("order", [])
    loads = [Neighbour(four.lab, host, name).loads(since) for name in order]
    assert len(loads) == len(here) == 2
    assert one_after_the_other(*loads), loads
    assert loads[0][0] < loads[1][0]


def test_one_that_loads_is_waited_for_also_by_a_higher_priority(four: Four) -> None:
    """A start that takes ten seconds; the two units are in no common transaction of systemd's."""
    first, second = neighbours(four)
    since = now(four.lab, first.host)
    four.lab.ssh(first.host, f"sudo systemctl stop {first.unit} {second.unit}")
    four.lab.ssh(first.host, f"sudo systemctl reset-failed {first.unit} {second.unit}", check=False)
    with slow_to_start(second):
        four.lab.ssh(first.host, f"sudo systemctl start --no-block {second.unit}")
        second.await_loading(since)
        four.lab.ssh(first.host, f"sudo systemctl start --no-block {first.unit}")
        for one in (first, second):
            one.await_ready()
    told = f"memory-gate: waiting for service {second.name}, which loads: one engine loads at a time"
    assert first.said(since, told)
    assert one_after_the_other(first.loads(since), second.loads(since))
    await_backends(four.lab, GATEWAY_HOST, 5)


def test_the_failure_of_the_first_does_not_keep_the_second_from_starting_at_a_boot(four: Four) -> None:
    first, second = neighbours(four)
    held = f"/etc/systemd/system/{first.unit}.d/held.conf"
    four.lab.write(first.host, held, "[Service]\nExecStartPre=/bin/false\n")
    try:
        four.lab.restart(first.host)
        second.await_ready()
        assert first.shown("ActiveState") != "active"
    finally:
        four.lab.ssh(first.host, f"sudo rm {held} && sudo systemctl daemon-reload")
    four.lab.ssh(first.host, f"sudo systemctl reset-failed {first.unit}; sudo systemctl start {first.unit}")
    first.await_ready()
    await_backends(four.lab, GATEWAY_HOST, 5)


def neighbours(four: Four) -> tuple[Neighbour, Neighbour]:
    """Two services of one host, in the order in which they start."""
    (host,) = four.where()["rank"]
    first, second = json.loads(four.lab.read(host, "/etc/tinderbox/services.json"))["order"]
    return Neighbour(four.lab, host, first), Neighbour(four.lab, host, second)


@contextmanager
def slow_to_start(one: Neighbour) -> Iterator[None]:
    """While this lasts, its readiness is found ten seconds later."""
    folder = f"/run/systemd/system/{one.unit}.d"
    one.lab.ssh(one.host, f"sudo mkdir -p {folder}")
    one.lab.write(one.host, f"{folder}/slow.conf", "[Service]\nExecStartPre=/bin/sleep 10\n")
    one.lab.ssh(one.host, "sudo systemctl daemon-reload")
    try:
        yield
    finally:
        one.lab.ssh(one.host, f"sudo rm -r {folder} && sudo systemctl daemon-reload")


def test_a_service_more_is_placed_and_shown_before_and_moves_none(four: Four) -> None:
    before, where = four.invocations(), dict(four.where())
    fleet = four.another("more", None, small={"replicas": 1})
    assert {name: hosts for name, hosts in four.where(fleet).items() if name != "small"} == where
    (host,) = four.where(fleet)["small"]
    shown = four.lab.tinderbox(["python", "-m", "modules.fleet"], fleet=fleet)
    assert f"service small: on {host} (new)\n" in shown.stdout, shown.text
    run = four.lab.converge("--dry", fleet=fleet)
    assert f"service small: on {host} (new)" in run.text
    done = deployed(four.lab, fleet, "--limit", host)
    assert done.rc == 0, done.text
    assert four.invocations() == before
    # One more has no place.
    full = four.another("full", None, small={"replicas": 2})
    refused = four.lab.tinderbox(["python", "-m", "modules.fleet"], fleet=full)
    assert refused.rc == 1
    assert "1 of 2 replicas fit nowhere" in refused.text
    assert "would fit" in refused.text
