"""From the container of a recipe to the image of a service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modules.catalog import Catalog
from modules.importer.recipe import Form, RefusedError

# What their own programs pull under a name without a registry (eugr/spark-vllm-docker build-and-copy.sh and README at
# 358bf26; spark-pulse spark_pulse/engines/defaults/vllm.yaml at 617ac2e). The -tf5 name is an older one of the same.
_PULLED = {
    "vllm-node": "docker.io/eugr/spark-vllm:latest",
    "vllm-node-tf5": "docker.io/eugr/spark-vllm:latest",
    "vllm-node-b12x": "docker.io/eugr/spark-vllm-b12x:latest",
}
_PULSE_ENGINES = "ghcr.io/kharkevich-engineering-lab/spark-pulse-engine"
_PULSE_PULLED = {"vllm-node": f"{_PULSE_ENGINES}/vllm:0.1.0"}
# Native MXFP4: our own recipe builds that very set of pins.
_MXFP4 = re.compile(r"(^vllm-node-mxfp4|[:/-]mxfp4)(:|$)")
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]*(@sha256:[0-9a-f]{64})?")
_HUB = "docker.io"


@dataclass(frozen=True)
class ChosenImage:
    """`engine`: of the catalog. `override`: what goes under the service's `image`. `left`: what differs from theirs."""

    engine: str
    override: Mapping[str, Any] = field(default_factory=dict)
    left: tuple[str, ...] = ()


def choose_image(program: str, container: str | None, form: Form, catalog: Catalog, source: str) -> ChosenImage:
    """The engine that serves, with the recipe's own image. Raises `RefusedError`: nobody else can have that image."""
    engine = {"vllm": "vllm", "sglang": "sglang", "llama-server": "llama-cpp"}[program]
    if container is None:
        return ChosenImage(engine, left=("image: none is named, so it is the catalog's",))
    if program == "vllm" and _MXFP4.search(container):
        told = f"image: built here by the catalog's recipe vllm-mxfp4 in place of {container}"
        return ChosenImage("vllm-mxfp4", left=(told,))
    reference = _reference(container, form)
    recipe: dict[str, Any] = {"reference": reference.partition("@")[0]}
    if container not in {reference, reference.removesuffix(":latest")} and container.startswith("vllm-node"):
        recipe["architecture"] = "12.1a"  # as both projects say of theirs
    if "@" in reference:
        recipe["digest"] = reference.partition("@")[2]
    ours = catalog.images[catalog.engines[engine].recipe].attest
    attest = {"modules": list(ours.modules), "help": list(ours.help), "choices": dict(ours.choices)}
    recipe["attest"] = {key: value for key, value in attest.items() if value}
    return ChosenImage(engine, {"recipe": {**recipe, "source": source}})


def _reference(container: str, form: Form) -> str:
    if not _REFERENCE.fullmatch(container):
        raise RefusedError(f"its container {container!r} is no image's name")
    plain = container.removesuffix(":latest")
    if form == "spark-pulse" and plain in _PULSE_PULLED:
        return _PULSE_PULLED[plain]
    if plain in _PULLED:
        return _PULLED[plain]
    if "/" not in container:
        raise RefusedError(f"its image {container} is in no registry: only its author has it")
    host = container.partition("/")[0]
    whole = container if "." in host or ":" in host or host == "localhost" else f"{_HUB}/{container}"
    tail = whole.rpartition("/")[2]
    return whole if ":" in tail or "@" in tail else f"{whole}:latest"
