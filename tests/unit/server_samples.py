"""What docker and the kernel tell of servers, in the forms that they really print, cut to what matters here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from modules.adopt.observed import Seen, seen_of
from modules.hostside.gather_servers import hidden_variables, hidden_words, shown, shown_image

COMMIT = "b5c939de8f754692c1647ca79fbf85e8c1e70f8a"
CONTAINER = "4652e5c88f27fa3faffa4b216dee0e30375e71b67e9f90fc8593a318b0628369"
IMAGE_ID = "sha256:1be919a400309c33ac2ab7d302c1b17f053fcf94675c20ac72309166c5de3ad8"
DIGEST = "sha256:6f312104a5bea9a244ce373498c4a75a9b4db9bfbf4638856cc7d4ae9bb5ca57"
GPU = [{"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}]
HUB = "/root/.cache/huggingface/hub"
FILES = {"config.json": 1671, "model-00001-of-00002.safetensors": 4_000_000_000, "model-00002-of-00002.safetensors": 9}
# As Debian's docker-compose 1.29.2 and docker's compose plugin label what they make.
COMPOSE = {
    "com.docker.compose.project": "stack",
    "com.docker.compose.service": "llm",
    "com.docker.compose.project.working_dir": "/home/spark/stack",
    "com.docker.compose.project.config_files": "docker-compose.yml",
}


def container(words: Sequence[str], **changes: Any) -> dict[str, Any]:
    """As `docker container inspect` tells it. `changes`: of `HostConfig`, and `Env`, `Labels`, `Mounts`."""
    host = {
        "NetworkMode": "host", "PortBindings": {}, "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "AutoRemove": False, "DeviceRequests": GPU, "Devices": [], "Runtime": "runc", "Privileged": False,
        "CapAdd": None, "IpcMode": "host", "ShmSize": 67108864,
    }  # fmt: skip
    config: dict[str, Any] = {"Image": "vllm/vllm-openai:v0.11.0", "Env": [], "Labels": {}, "Entrypoint": None}
    bound = [{"Type": "bind", "Source": "/home/nvidia/.cache/huggingface", "Destination": "/root/.cache/huggingface"}]
    return {
        "Id": CONTAINER,
        "Name": changes.pop("Name", "/llm"),
        "Path": words[0],
        "Args": list(words[1:]),
        "Image": IMAGE_ID,
        "State": {"Pid": 4711},
        "Mounts": changes.pop("Mounts", bound),
        "Config": config
        | {key: changes.pop(key) for key in ("Env", "Labels", "Entrypoint", "Image") if key in changes},
        "HostConfig": host | changes,
    }


def image(**changes: Any) -> dict[str, Any]:
    """As `docker image inspect` tells it."""
    told = {
        "Id": IMAGE_ID, "RepoTags": ["vllm/vllm-openai:v0.11.0"], "RepoDigests": [f"vllm/vllm-openai@{DIGEST}"],
        "Architecture": "arm64",
    }  # fmt: skip
    config = {"Env": ["PATH=/usr/bin"], "Entrypoint": ["vllm", "serve"]}
    return {**told, **changes, "Config": {**config, **changes.pop("Config", {})}}


def process(words: Sequence[str], environment: Sequence[str] = (), **changes: Any) -> dict[str, Any]:
    """As `gather_servers.py` tells it."""
    model = {"refs": {"main": COMMIT}, "snapshots": {COMMIT: FILES}}
    told = {
        "pid": 4711, "parent": 1, "uid": 0, "words": hidden_words(words), "container": CONTAINER, "unit": None,
        "environment": hidden_variables(environment),
        "caches": [{"path": HUB, "models": {"openai/gpt-oss-20b": model}}],
    }  # fmt: skip
    return told | changes


def seen(
    process: Mapping[str, Any], container: Mapping[str, Any] | None = None, image: Mapping[str, Any] | None = None,
    units: Sequence[Mapping[str, str]] = (), gpu: Sequence[Mapping[str, Any]] = (),
) -> Seen:  # fmt: skip
    """What comes of one process."""
    told = {"container": shown(container), "image": shown_image(image) if image else None} if container else None
    containers = {CONTAINER: told} if told else {}
    return seen_of(json.dumps({"processes": [process], "containers": containers, "units": units, "gpu": list(gpu)}))
