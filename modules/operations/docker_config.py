"""What stands in dockerd's files, as pure functions of the fleet file and of what the host had."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from modules.facts.docker_daemon import REGISTRY_CERTIFICATE, REGISTRY_CERTIFICATES
from modules.operations.managed_files import ManagedFile
from modules.operations.site import environment_file, proxy_environment
from modules.spec.network import Network, Proxy
from modules.spec.settings import Runtime

NVIDIA_RUNTIME = {"args": [], "path": "nvidia-container-runtime"}
PROXY_ENVIRONMENT = "/etc/tinderbox/docker.env"
PROXY_DROP_IN = "/etc/systemd/system/docker.service.d/tinderbox-proxy.conf"

Config = dict[str, Any]


class ConfigError(Exception):
    """The host's daemon.json is not one."""


def parsed(text: str | None) -> Config:
    """The host's daemon.json. ConfigError, with line and column, where it is not a JSON object."""
    if text is None or not text.strip():
        return {}
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if not isinstance(config, dict):
        raise ConfigError("it is not a JSON object")
    for key in ("runtimes", "features", "log-opts"):
        if not isinstance(config.get(key, {}), dict):
            raise ConfigError(f"its {key} is not a JSON object")
    return config


def merged(config: Config, wish: Runtime) -> Config:
    """The configuration with NVIDIA's runtime and rotated logs, and everything else as the host's owner has it.

    A log driver other than json-file is the owner's choice and stays, and so does a runtime `nvidia` of theirs.
    """
    result = dict(config)
    result["runtimes"] = {"nvidia": NVIDIA_RUNTIME, **config.get("runtimes", {})}
    result["features"] = {"buildkit": True, **config.get("features", {})}
    if config.get("log-driver", "json-file") == "json-file":
        rotation = {"max-size": wish.log_max_size, "max-file": str(wish.log_max_files)}
        result["log-driver"] = "json-file"
        result["log-opts"] = {**config.get("log-opts", {}), **rotation}
    return result


def rendered(config: Config) -> str:
    """The text of a daemon.json."""
    return json.dumps(config, indent=4) + "\n"


def proxy_files(proxy: Proxy) -> list[ManagedFile]:
    """What gives dockerd the proxy for its pulls. The address can hold a password, so it stands in no unit's text."""
    variables = {name: value for name, value in proxy_environment(proxy).items() if name.isupper()}
    needed = not set(variables) <= {"NO_PROXY"}
    drop_in = f"[Service]\nEnvironmentFile={PROXY_ENVIRONMENT}\n"
    return [
        ManagedFile(PROXY_ENVIRONMENT, environment_file(variables) if needed else None, mode="600"),
        ManagedFile(PROXY_DROP_IN, drop_in if needed else None),
    ]


def registry_certificates(network: Network, ca_bundle: str | None, former: Iterable[str]) -> list[ManagedFile]:
    """The site's certificates for pulls from its registry; `former`: where earlier ones lie, of which others go away.

    dockerd reads these at each pull, the trust store only when it starts.
    """
    wanted: dict[str, str | None] = dict.fromkeys(former)
    if network.registry is not None and ca_bundle is not None:
        path = f"{REGISTRY_CERTIFICATES}/{network.registry}/{REGISTRY_CERTIFICATE}"
        wanted[path] = ca_bundle.rstrip("\n") + "\n"
    return [ManagedFile(path, content) for path, content in wanted.items()]
