"""The container of a service: `docker run` as an argument vector. Nothing is privileged, nothing restarts itself."""

from __future__ import annotations

from collections.abc import Mapping

from modules.release import layout
from modules.spec.engine import Container, Engine

DOCKER = "/usr/bin/docker"


def environment(
    engine: Engine, extra: Mapping[str, str], *, home: str, encodings: bool, address: str | None = None
) -> dict[str, str]:
    """What the engine's process sees, without secrets.

    `extra` (the fleet file's) wins over the engine's, and both over what keeps it from the network: all that it needs
    is on the host. `address`: of the host between the members of a cluster.
    """
    offline = {
        "HF_HUB_CACHE": layout.hub_cache(home),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
    }
    if encodings:
        # Harmony's own, then Python's and Rust's tiktoken, which look there by the sha1 of the published URL.
        for name in ("TIKTOKEN_ENCODINGS_BASE", "TIKTOKEN_CACHE_DIR", "TIKTOKEN_RS_CACHE_DIR"):
            offline[name] = str(layout.ENCODINGS)
    own = engine.environment if address is None else spanning_environment(engine, address)
    return dict(sorted({**offline, **own, **extra}.items()))


def spanning_environment(engine: Engine, address: str) -> dict[str, str]:
    """The engine's variables on a member of a cluster: what keeps it to its own host makes way for the others."""
    spread = engine.multi_node
    if spread is None:
        return engine.environment
    found_at_start = {*spread.interface_variables, *spread.hca_variables}
    own = {name: value for name, value in engine.environment.items() if name not in found_at_start}
    return {**own, **spread.environment, **dict.fromkeys(spread.address_variables, address)}


def found_at_start(engine: Engine, extra: Mapping[str, str], address: str | None) -> tuple[str, ...]:
    """Words for `start_container.py`: variables that follow from what the host's network is called when it starts."""
    spread = engine.multi_node
    if spread is None or address is None:
        return ()
    words = ["--address", address]
    words += [f"--interface-variable={name}" for name in spread.interface_variables if name not in extra]
    words += [f"--hca-variable={name}" for name in spread.hca_variables if name not in extra]
    return tuple(words)


def mounts(service: str, caches: Mapping[str, str], *, home: str, encodings: bool) -> tuple[str, ...]:
    """`--mount` values: weights and encodings read-only at the host's own paths, caches to write to."""
    hub = layout.hub_cache(home)
    readable = [hub, str(layout.ENCODINGS)] if encodings else [hub]
    bound = [f"type=bind,source={path},target={path},readonly" for path in readable]
    bound += [
        f"type=bind,source={layout.cache_directory(service, name)},target={caches[name]}" for name in sorted(caches)
    ]
    return tuple(bound)


def run_arguments(
    service: str,
    image: str,
    command: tuple[str, ...],
    *,
    container: Container,
    mounts: tuple[str, ...],
    secret_files: tuple[str, ...],
    at_start: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """`docker run …`. Devices are given to `start_container.py`, which asks the host whether they are there.

    `at_start`: what else that program is to find out.
    """
    words = [DOCKER, "run", "--rm", "--pull", "never"]
    words += ["--name", layout.container_name(service), "--label-file", layout.label_file(service)]
    words += ["--network", "host", "--ipc", container.ipc]
    # Nothing in an engine's image has a reason to become more than it is.
    words += ["--security-opt", "no-new-privileges"]
    if container.shm_size is not None and container.ipc != "host":
        words += ["--shm-size", container.shm_size]
    if container.gpus:
        words += ["--gpus", "all"]
    for name, value in sorted(container.ulimits.items()):
        words += ["--ulimit", f"{name}={value}"]
    for capability in sorted(container.capabilities):
        words += ["--cap-add", capability]
    words += ["--env-file", layout.environment_file(service)]
    for file in secret_files:
        words += ["--env-file", file]
    for mount in mounts:
        words += ["--mount", mount]
    # The image's own entrypoint may wrap the command (NGC's prints a banner first), so it stays in force.
    starter = [layout.PYTHON, str(layout.PROGRAMS / "start_container.py")]
    for device in container.devices:
        starter += ["--device", device]
    if container.entrypoint is not None:
        words += ["--entrypoint", container.entrypoint]
        command = command[1:]
    run = [*words, image, *command]
    return tuple([*starter, *at_start, "--", *run] if container.devices or at_start else run)
