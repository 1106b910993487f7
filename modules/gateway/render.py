"""A gateway → the files of its HAProxy."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from modules.fleet.gateway import AgentPlan, GatewayPlan, Route, Upstream
from modules.spec.gateway import Client, Gateway

_TEMPLATES = Path(__file__).parents[2] / "roles" / "gateway" / "templates"
CONFIGURATION, CLIENTS, KEYS, CERTIFICATE = "haproxy.cfg", "clients.map", "keys.map", "certificate.pem"
# By which a client can say itself what belongs together; for balance: prefix.
CONVERSATION_HEADER = "x-conversation-id"
# Room in a buffer beside a request's body: its headers, and what is added to them.
_HEADERS_KIB = 64
# A host gets at most this much more than its share of requests before one goes to another host than its conversation's.
BOUND_PERCENT = 150


def gateway_files(
    plan: GatewayPlan, secrets: Mapping[str, str], certificate: str | None, name: str = "gateway"
) -> dict[str, str]:
    """Name → text of all files. `secrets`: name → value. `certificate`: with its key, where the controller has them.

    What HAProxy is told of clients' keys are their hashes. Only the files beside the configuration hold secrets.
    """
    gateway = plan.gateway
    files = {CONFIGURATION: configuration(plan, name)}
    if gateway.clients:
        lines = [f"{_hash(secrets[client.key])} {client_name}" for client_name, client in gateway.clients.items()]
        files[CLIENTS] = "".join(f"{line}\n" for line in sorted(lines))
    keys = {route.service: secrets[route.secret] for route in plan.routes if route.secret is not None}
    if keys:
        files[KEYS] = "".join(f"{service} {value}\n" for service, value in sorted(keys.items()))
    if certificate is not None:
        files[CERTIFICATE] = certificate
    return files


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest().upper()


def digest(files: Mapping[str, str]) -> str:
    """Twelve hex digits of the sha256 of all files: `gateway_host.py` finds the same for what lies on the host."""
    found = hashlib.sha256()
    for name, text in sorted(files.items()):
        for part in (name.encode(), text.encode()):
            found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()[:12]


def configuration(plan: GatewayPlan, name: str = "gateway") -> str:
    """The text of haproxy.cfg. It holds no secret."""
    gateway = plan.gateway
    body = gateway.limits.body_kib * 1024
    return str(
        _templates()
        .get_template("haproxy.cfg.j2")
        .render(
            name=name,
            gateway=gateway,
            limits=gateway.limits,
            routes=plan.routes,
            certificate=None if gateway.tls is None else gateway.tls.host_file or CERTIFICATE,
            clients=CLIENTS,
            keys=KEYS,
            body=body,
            buffer=body + _HEADERS_KIB * 1024,
            bound=BOUND_PERCENT,
            conversation=CONVERSATION_HEADER,
            error=error,
            of_client=_of_client,
            server=_server,
            models=_models(plan.routes),
            place=_place,
            named=_named,
        )
    )


def unit_text() -> str:
    """The gateway's own unit, beside HAProxy's, which is its owner's."""
    return str(_templates().get_template("gateway.unit.j2").render())


def agent_files(plan: AgentPlan, asked: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """Path → text of what a host's agent is made of. `asked`: service → how the host asks its engine."""
    document = {
        "drain_s": plan.drain_s,
        "gateways": list(plan.gateways),
        "services": {service: dict(asked[service]) for service in plan.services},
    }
    units, template = "/etc/systemd/system", _templates().get_template
    socket = template("agent.socket.j2").render(place=_place(plan.listen, plan.port))
    return {
        "/etc/tinderbox/agent.json": json.dumps(document, indent=1, sort_keys=True) + "\n",
        f"{units}/tinderbox-agent.socket": str(socket),
        f"{units}/tinderbox-agent.service": str(template("agent.service.j2").render()),
    }


def error(message: str, kind: str, code: str | None = None) -> str:
    """An error as OpenAI's clients read it, as one quoted word of HAProxy's configuration."""
    document = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return quoted(json.dumps(document))


def quoted(text: str) -> str:
    """One word, in which HAProxy expands nothing."""
    return "'" + text.replace("'", "'\\''") + "'"


def _models(routes: tuple[Route, ...]) -> str:
    entries = [
        {"id": name, "object": "model", "created": 0, "owned_by": "tinderbox"}
        for route in routes
        for name in route.names
    ]
    return quoted(json.dumps({"object": "list", "data": entries}))


def _named(model: str) -> str:
    """A regular expression over a request's body that finds the model's name."""
    return quoted(f'"model"[[:space:]]*:[[:space:]]*"{re.escape(model)}"')


def _of_client(gateway: Gateway, limit: str) -> list[tuple[str, int]]:
    """Client → its limit of that kind, where it has one."""
    common: int | None = getattr(gateway.limits, limit)
    clients: Mapping[str, Client] = gateway.clients
    found = {name: getattr(client, limit) or common for name, client in clients.items()}
    return [(name, value) for name, value in found.items() if value is not None]


def _place(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _server(upstream: Upstream, route: Route, gateway: Gateway) -> str:
    """One server line. HAProxy's `agent-send` takes a text with its line's end written out."""
    words = [upstream.host, _place(upstream.address, upstream.port), "check"]
    words += ["agent-check", "agent-addr", upstream.agent, "agent-port", str(gateway.agent_port)]
    words += ["agent-send", f'"{route.service}\\n"']
    if gateway.limits.per_host is not None:
        words += ["maxconn", str(gateway.limits.per_host)]
    return " ".join(words)


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (no markup)
    )
