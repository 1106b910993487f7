"""Lab hosts that serve by a fake engine in a real image, behind the gateway of another lab host.

Role gateway, HAProxy, agents, units, ledger and programs are the real ones. What is not needed for them is left out:
toolkit, and on the gateway's host docker.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab.fake_release import CUTLASS, GATE, PORT, READINESS, SERVICE, recipe
from tests.lab.lab_driver import Lab, Run

GATEWAY_HOST, GATEWAY_PORT, METRICS_PORT, AGENT_PORT = "spark-1", 8080, 8405, 5588
# In the catalog, and in the API.
CATALOG_MODEL, MODEL = "lab-gpt-oss-tiny", "gpt-oss-tiny"
KEYS = {
    "alice-key": "sk-alice-0123456789abcdef",
    "bob-key": "sk-bob-0123456789abcdef",
    "engine-key": "sk-engine-0123456789abcdef",
}
# Slow enough for a reply to be under way whenever something happens to its host.
PACE = {"FAKE_TOKEN_S": "0.05", "FAKE_WHOLE_S": "1"}
_DEPLOY = """\
from pyinfra import host
from modules.fleet import plan_of
from roles.encodings import encodings
from roles.engine import engine
from roles.gate import gate
from roles.gateway import agent, gateway
from roles.image import image
from roles.runtime import runtime
from roles.site import site
from roles.system import system
from roles.weights import weights
plan = plan_of(host)
site(plan=plan)
system(plan=plan)
if plan.services:
    runtime(plan=plan)
image(plan=plan)
encodings(plan=plan)
weights(plan=plan)
agent(plan=plan)
engine(plan=plan)
gate(plan=plan)
gateway(plan=plan)
"""


def write_keys(lab: Lab) -> dict[str, dict[str, str]]:
    """The secrets' files beside the fleet file, and how it names them."""
    for name, value in KEYS.items():
        path = lab.layout.folder / name
        path.touch(mode=0o600)
        path.write_text(f"{value}\n")
    return {name: {"file": f"./{name}"} for name in KEYS}


def service_of(lab: Lab, keys: Mapping[str, Any] | None = None, /, **environment: str) -> dict[str, Any]:
    """A service of the fake engine, open to the lab's network. `keys`: of it, that differ."""
    return {
        "engine": "vllm-cpu",
        "model": CATALOG_MODEL,
        "profile": "balanced",
        "port": PORT,
        "listen": "0.0.0.0",
        "api_key": "engine-key",
        "gate": GATE,
        "image": {"recipe": recipe(lab)},
        "readiness": READINESS,
        "environment": {"FAKE_SAYS": CUTLASS, **PACE, **environment},
        **(keys or {}),
    }


def gateway_settings(**changes: Any) -> dict[str, Any]:
    """The gateway's settings; `changes` to them."""
    clients = {"alice": {"key": "alice-key"}, "bob": {"key": "bob-key"}}
    return {"listen": "0.0.0.0", "port": GATEWAY_PORT, "clients": clients, "drain_s": 60, **changes}


def fleet_of(
    lab: Lab,
    name: str,
    hosts: Sequence[str] = ("spark-2", "spark-3"),
    gateway: Mapping[str, Any] | None = None,
    services: Mapping[str, Mapping[str, Any]] | None = None,
    **outer: Any,
) -> Path:
    """A fleet file: the gateway on its host, and on each of `hosts` the services.

    `gateway`: its settings; the usual ones without it; empty: there is none. `services`: host → name → service; the
    usual one without it. `outer`: keys of the file itself, as `strategy`.
    """
    secrets = write_keys(lab)

    def change(content: dict[str, Any]) -> None:
        content |= {"fleet": "endpoint", "secrets": secrets, **outer}
        del content["defaults"]["services"]
        usual = {SERVICE: service_of(lab)} if services is None else {}
        content["hosts"] = {host: content["hosts"][host] for host in (GATEWAY_HOST, *hosts)}
        for host, entry in content["hosts"].items():
            settings: dict[str, Any] = {"network": {"peer_address": lab.address(host)}}
            if host in hosts:
                settings["services"] = {**usual, **(services or {}).get(host, {})}
            elif gateway != {}:
                settings["gateway"] = gateway_settings() if gateway is None else dict(gateway)
            entry["settings"] = settings

    return lab.write_fleet(f"endpoint-{name}", change)


def deployed(lab: Lab, fleet: Path, *arguments: str, **environment: str) -> Run:
    """A run of all stages that this needs. `arguments`: more of pyinfra's, as `--limit`."""
    deploy = lab.layout.folder / "endpoint.py"
    deploy.write_text(_DEPLOY)
    words = ["env", *(f"{name}={value}" for name, value in environment.items())]
    return lab.tinderbox([*words, "pyinfra", "inventory.py", str(deploy), "-y", "--json", *arguments], fleet=fleet)


def url(lab: Lab, *, tls: bool = False) -> str:
    """Where clients ask."""
    return f"{'https' if tls else 'http'}://{lab.address(GATEWAY_HOST)}:{GATEWAY_PORT}"


def trusting(certificate: Path) -> ssl.SSLContext:
    """For a client that trusts this certificate alone."""
    return ssl.create_default_context(cafile=str(certificate))


def changed(run: Run) -> int:
    """How many operations changed something."""
    return int(run.json["results"]["totals"]["success"])
