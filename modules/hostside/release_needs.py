"""Whether a release of the ledger could still be started: its image and its model must be on the host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.service_unit import run
else:
    from service_unit import run


def lacks(entry: Mapping[str, Any] | None) -> list[str]:
    """What of it has been removed meanwhile, in words."""
    if entry is None:
        return ["its entry in the ledger"]
    release = entry.get("release") or {}
    found = []
    image = release.get("image")
    if image and run("docker", "image", "inspect", "--format", "{{.Id}}", image) is None:
        found.append(f"its image {image}")
    hub = (release.get("environment") or {}).get("HF_HUB_CACHE")
    for name, revision in (("model", "commit"), ("draft", "draft_commit")):
        model, commit = release.get(name), release.get(revision)
        if hub and model and not Path(hub, f"models--{model.replace('/', '--')}", "snapshots", str(commit)).exists():
            found.append(f"the weights of {model} at {commit}")
    return found
