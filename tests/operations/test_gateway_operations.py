"""What hosts get for the fleet's one endpoint, and that those that have it get nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modules.facts.apt import AptPackage, PackageState
from modules.facts.files import FileState
from modules.facts.gateway import PROGRAM, Agent, AgentState, GatewayDifferences
from modules.fleet import Fleet, HostPlan
from modules.fleet.gateway import AgentPlan, GatewayPlan
from modules.gateway.render import digest, gateway_files, unit_text
from modules.operations import gateway
from modules.operations.gateway import agent_documents, agent_listens, gateway_serves
from modules.spec.gateway import Tls
from modules.spec.secret import SecretReference
from modules.spec.settings import HostSettings
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.gateway_samples import CLIENTS, SECRETS
from tests.unit.gateway_samples import gateway as plan_of
from tests.unit.release_samples import service_plan

PLAN = plan_of(clients=CLIENTS)
TOLD = AgentPlan("0.0.0.0", 5588, ("gpt-oss",), ("10.0.0.10",), 120)
HOST = HostPlan(
    "spark-1", HostSettings(), (service_plan(listen="0.0.0.0", api_key="engine"),)
)  # fmt: skip


@pytest.fixture(autouse=True)
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fleet with the secrets of clients and services."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(f"KEY_{name}", value)
    secrets = {name: SecretReference(env=f"KEY_{name}") for name in SECRETS}
    office = Fleet(name="office", path=tmp_path / "fleet.yaml", hosts={}, secrets=secrets)
    monkeypatch.setattr(gateway, "load_fleet", lambda: office)


def given(differences: tuple[str, ...] | None, plan: GatewayPlan = PLAN) -> tuple[StubHost, list[Any]]:
    host = StubHost({GatewayDifferences: differences, AptPackage: PackageState(None, {}, {})})
    return host, commands_of(host, gateway_serves, plan=plan)


def test_a_gateway_that_is_as_wished_gets_nothing_and_is_asked_once() -> None:
    host, commands = given(())
    assert commands == []
    assert host.noops == ["the gateway serves gpt-oss-120b"]
    ((fact, arguments),) = host.asked
    assert fact is GatewayDifferences
    assert arguments["digest"] == digest(gateway_files(PLAN, SECRETS, None))
    assert arguments["unit_sha256"] == hashlib.sha256(unit_text().encode()).hexdigest()


def test_another_configuration_goes_by_standard_input_and_haproxy_is_not_asked_for_again() -> None:
    _, (command,) = given(("its configuration is another one",))
    assert command.get_raw_value() == f"/usr/bin/python3 {PROGRAM} apply"
    document = json.loads(command.connector_arguments["_stdin"])
    assert document == {"files": gateway_files(PLAN, SECRETS, None), "unit": unit_text()}


def test_a_host_without_haproxy_gets_it_first() -> None:
    _, (install, follow, apply) = given((gateway.NOT_INSTALLED,))
    assert "install_package.py" in install.get_raw_value()
    assert "haproxy" in install.get_raw_value()
    assert follow is not None
    assert apply.get_raw_value().endswith("apply")


def test_no_command_line_holds_a_secret() -> None:
    _, commands = given(("its unit is inactive",))
    told = " ".join(command.get_raw_value() for command in commands)
    assert not [secret for secret in SECRETS.values() if secret in told]


def test_certificate_and_key_come_from_the_controller_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "front.crt").write_text("CERTIFICATE")
    (tmp_path / "front.key").write_text("KEY\n")
    tls = Tls(certificate=str(tmp_path / "front.crt"), key=str(tmp_path / "front.key"))
    plan = GatewayPlan(PLAN.gateway.model_copy(update={"tls": tls}), PLAN.routes)
    _, (command,) = given(("its configuration is another one",), plan)
    files = json.loads(command.connector_arguments["_stdin"])["files"]
    assert files["certificate.pem"] == "CERTIFICATE\nKEY\n"
    (tmp_path / "front.key").unlink()
    _, (refusal,) = given((), plan)
    assert "certificate could not be read here" in refusal.get_raw_value()


def test_a_host_that_gives_no_answer_is_refused() -> None:
    _, (refusal,) = given(None)
    assert "the state of the gateway could not be read" in refusal.get_raw_value()


def agent(state: AgentState | None) -> tuple[StubHost, list[Any]]:
    host = StubHost({Agent: state})
    return host, commands_of(host, agent_listens, plan=TOLD, services=HOST)


def listening() -> AgentState:
    files: dict[str, FileState | None] = {
        file.path: FileState(hashlib.sha256(str(file.content).encode()).hexdigest(), file.mode, "root:root")
        for file in agent_documents(TOLD, HOST)
    }
    return AgentState(files, listens=True, stale=False)


def test_an_agent_that_listens_gets_nothing() -> None:
    host, commands = agent(listening())
    assert commands == []
    assert host.noops == ["gateways are told of gpt-oss at port 5588"]


def test_an_agent_gets_its_files_and_is_started() -> None:
    _, (*files, start) = agent(AgentState({}, listens=False, stale=False))
    assert len(files) == 3
    document = json.loads(files[0].connector_arguments["_stdin"])
    # Where the key lies, and no key.
    assert document["services"]["gpt-oss"]["secret_file"] == "/etc/tinderbox/gpt-oss.secret.env"
    assert document["gateways"] == ["10.0.0.10"]
    assert start.get_raw_value().endswith("agent_host.py settle")


@pytest.mark.parametrize("state", [replace(listening(), listens=False), replace(listening(), stale=True)])
def test_a_run_that_was_cut_after_the_files_is_finished(state: AgentState) -> None:
    _, (start,) = agent(state)
    assert start.get_raw_value().endswith("agent_host.py settle")


def test_the_facts_read_what_the_host_says() -> None:
    assert GatewayDifferences().process(['["its unit is failed"]']) == ("its unit is failed",)
    lines = ["ActiveState=active UnitFileState=enabled ", "no no ", "absent - - /etc/a b"]
    assert Agent().process(lines) == AgentState({"/etc/a b": None}, listens=True, stale=False)
    assert Agent().process(["ActiveState=inactive UnitFileState= ", "no yes ", "absent - - /etc/a"]) == AgentState(
        {"/etc/a": None}, listens=False, stale=True
    )
