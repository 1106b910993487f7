"""The fleet's gateway on its host, and on each host that serves the agent that tells the gateway of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from pathlib import Path

from pyinfra import host, logger
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.gateway import PROGRAM, Agent, AgentState, GatewayDifferences
from modules.facts.survey import Question
from modules.fleet import HostPlan, load_fleet
from modules.fleet.gateway import AgentPlan, GatewayPlan
from modules.gateway.render import agent_files, digest, gateway_files, unit_text
from modules.operations.apt import package_installed
from modules.operations.managed_files import ManagedFile, settle, unsettled
from modules.operations.require import refusal, unreadable
from modules.release import layout
from modules.release.build import key_file, key_variable
from modules.spec.gateway import Tls

PACKAGE = "haproxy"
AGENT_PROGRAM = str(layout.PROGRAMS / "agent_host.py")
NOT_INSTALLED = f"{PACKAGE} is not installed"  # as gateway_host.py says it


def secrets_of(plan: GatewayPlan) -> dict[str, str]:
    """Name → value of the clients' keys and of the services'."""
    names = {client.key for client in plan.gateway.clients.values()}
    names |= {route.secret for route in plan.routes if route.secret is not None}
    return {name: load_fleet().secret(name) for name in names}


def certificate_of(tls: Tls | None) -> str | None:
    """Certificate and key in one text, where the controller has them."""
    if tls is None or tls.certificate is None or tls.key is None:
        return None
    return "".join(Path(path).read_text(encoding="utf-8").rstrip("\n") + "\n" for path in (tls.certificate, tls.key))


def agent_documents(plan: AgentPlan, services: HostPlan) -> list[ManagedFile]:
    """The agent's files. They name where a key lies, and hold none."""
    asked: dict[str, dict[str, object]] = {}
    for one in services.services:
        asked[one.name] = {
            "url": layout.endpoint(one.service.listen, one.service.port),
            "port": one.service.port,
        }
        if (variable := key_variable(one)) is not None:
            asked[one.name] |= {"secret_file": key_file(one), "key_variable": variable}
    return [ManagedFile(path, text) for path, text in agent_files(plan, asked).items()]


def agent_there(plan: AgentPlan, services: HostPlan) -> Question[AgentState]:
    """What the host has of the agent."""
    return Question(Agent, {"paths": [file.path for file in agent_documents(plan, services)]})


def gateway_there(files: Mapping[str, str], unit: str) -> Question[tuple[str, ...]]:
    """How the host stands to what the gateway is to be."""
    sha256 = hashlib.sha256(unit.encode()).hexdigest()
    return Question(GatewayDifferences, {"digest": digest(files), "unit_sha256": sha256})


def wanted_files(plan: GatewayPlan) -> dict[str, str]:
    """Name → text of the gateway's files. Raises `OSError` where its certificate can not be read here."""
    return gateway_files(plan, secrets_of(plan), certificate_of(plan.gateway.tls))


@operation()
def agent_listens(plan: AgentPlan, services: HostPlan) -> Generator[PyinfraCommand, None, None]:
    """Have the host tell the fleet's gateways whether it takes requests, and drain its services for them.

    + plan: whom it tells of what
    + services: all of the host
    """
    files = agent_documents(plan, services)
    found = agent_there(plan, services).of(host)
    if found is None:
        yield from unreadable("what it tells gateways")
        return
    changes = unsettled(files, found.files)
    if not changes and found.listens and not found.stale:
        host.noop(f"gateways are told of {', '.join(plan.services)} at port {plan.port}")
        return
    yield from settle(changes)
    yield StringCommand(layout.PYTHON, AGENT_PROGRAM, "settle")


@operation()
def gateway_serves(plan: GatewayPlan) -> Generator[PyinfraCommand, None, None]:
    """Have the gateway serve as the fleet file says. Its clients' connections last over any change but its address.

    + plan: the gateway, with where it sends requests
    """
    try:
        files = wanted_files(plan)
    except OSError as error:
        yield refusal(f"{host.name}: the gateway's certificate could not be read here: {error}")
        return
    unit = unit_text()
    found = gateway_there(files, unit).of(host)
    if found is None:
        yield from unreadable("the state of the gateway")
        return
    if not found:
        host.noop(f"the gateway serves {', '.join(route.model for route in plan.routes)}")
        return
    for difference in found:
        logger.debug("%s: gateway: %s", host.name, difference)
    if found == (NOT_INSTALLED,):
        yield from package_installed(PACKAGE, "*", None)
    yield StringCommand(layout.PYTHON, PROGRAM, "apply", _stdin=json.dumps({"files": files, "unit": unit}))
