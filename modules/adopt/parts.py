"""Parts of a service that a server becomes: its secrets' names, and how its container runs. Pure."""

from __future__ import annotations

import json
from typing import Any

from modules.adopt.observed import Observed
from modules.spec.engine import Engine

KEYS = ("VLLM_API_KEY", "LLAMA_API_KEY", "SGLANG_API_KEY")
TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN")


def secrets_of(server: Observed, name: str, engine: Engine, service: dict[str, Any], told: list[str]) -> dict[str, Any]:
    """Name → where the fleet file looks for it; the service is given the names, and `told` what is to be done."""
    secrets: dict[str, Any] = {}
    by_flag = any(word.startswith("--api-key") for word in server.words)
    if by_flag or any(server.environment.get(one) for one in KEYS):
        if engine.api_key_variable is None:
            told.append("api_key: it has one, and this engine takes none that can be kept secret: it has none here")
        else:
            secret = f"{name}-key"
            secrets[secret] = {"env": f"{name}_KEY".upper().replace("-", "_")}
            service["api_key"] = secret
            told.append(
                f"api_key: its key is not shown; put it where secrets.{secret} says, so that clients keep theirs"
            )
    if any(server.environment.get(one) for one in TOKENS):
        secrets["hf-token"] = {"env": "HF_TOKEN"}
        service["model"]["token"] = "hf-token"  # noqa: S105, the name of one
        told.append("model.token: its token of the hub is not shown; without need of one (no gated model) take it out")
    return secrets


def container_of(server: Observed, entrypoint: str | None, engine: Engine, told: list[str]) -> dict[str, Any] | None:
    """What the service's `container` differs in from its engine's; None: in nothing. `told`: what is left out."""
    if server.docker is None:
        return None
    host = server.docker["HostConfig"]
    changes: dict[str, Any] = {} if entrypoint is None else {"entrypoint": entrypoint}
    if not server.has_gpu:
        changes["gpus"] = False
    if host.get("Privileged"):
        told.append("container: it is privileged; ours never is")
    if extra := [
        one for one in host.get("CapAdd") or [] if one.removeprefix("CAP_") not in engine.container.capabilities
    ]:
        told.append(f"container: capabilities {', '.join(extra)} are left out: name each with its reason, if need be")
    inside = {cache.path for cache in server.caches}
    for mount in server.docker["Mounts"]:
        folder = str(mount["Destination"])
        used = [word for word in server.words if word.partition("=")[2].startswith(folder) or word.startswith(folder)]
        if used and not any(path.startswith(folder) for path in inside):
            told.append(f"container: {', '.join(used)} lies in {mount['Source']} of the host, which ours has not: the "
                        "image must hold it")  # fmt: skip
    if not changes:
        return None
    own = json.loads(engine.container.model_dump_json(exclude_defaults=True))
    merged = {**own, **changes}
    if not server.has_gpu:
        # Limits that an engine on the GPU needs.
        for name in ("ulimits", "devices", "capabilities"):
            merged.pop(name, None)
    return merged
