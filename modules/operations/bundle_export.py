"""Export what a host has to a bundle, for hosts that reach nothing outside."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from typing import Any

from pyinfra import host
from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.bundle import BundleOnHost
from modules.fleet import HostPlan, load_fleet
from modules.fleet.lock import read_lock
from modules.images import image_reference
from modules.operations.hostside import programs
from modules.operations.job import Job, run_job
from modules.operations.require import refusal, unreadable
from modules.operations.tools import lock_identity
from modules.operations.weights import pinned_commit
from modules.release import layout
from modules.spec.lock import Lock
from modules.spec.model import Model

_TIMEOUT_S = 12 * 3600
_GIB = 1024**3


def export_request(plan: HostPlan, models: list[Model], lock: Lock) -> dict[str, Any]:
    """What `export_bundle.py` is told; `key`: equal when, and only when, the bundle would hold the same."""
    images = {image_reference(service.recipe, lock): service.recipe for service in plan.services}
    encodings = {name: encoding for service in plan.services for name, encoding in service.encodings.items()}
    request: dict[str, Any] = {
        "images": [
            {
                "name": name,
                "wish": recipe.reference,
                "digest": recipe.digest or lock.digest(recipe.reference or ""),
                "sources": {pin: of.model_dump() for pin, of in recipe.pins.items()},
                "architecture": recipe.architecture,
            }
            for name, recipe in sorted(images.items())
        ],
        "models": [
            {
                "repository": model.repository,
                "revision": model.revision,
                "commit": pinned_commit(model),
                "home": plan.settings.weights.home,
                "filters": {"include": list(model.include), "exclude": list(model.exclude)},
            }
            for model in models
        ],
        "encodings": [
            {"name": name, "sha256": encoding.sha256, "size": encoding.size}
            for name, encoding in sorted(encodings.items())
        ],
    }
    tags = {tag for recipe in images.values() for tag in (recipe.reference, recipe.base) if tag is not None}
    request["lock"] = {"images": {tag: digest for tag, digest in sorted(lock.images.items()) if tag in tags}}
    words = json.dumps([request, lock_identity(programs()["tools.lock"])], sort_keys=True)
    return request | {
        "key": hashlib.sha256(words.encode()).hexdigest()[:12],
        "to": plan.settings.bundle.export_to,
        "reserve_bytes": int(plan.settings.hardware.reserve_disk_gib * _GIB),
    }


def export_job(request: dict[str, Any]) -> Job:
    """The job that exports."""
    text = json.dumps(request, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:12]
    command = (layout.PYTHON, str(layout.PROGRAMS / "export_bundle.py"), text)
    return Job("bundle", key, f"bundle to {request['to']}", command, _TIMEOUT_S)


@operation()
def bundle_exported(plan: HostPlan, models: list[Model]) -> Generator[PyinfraCommand, None, None]:
    """Have a whole bundle of what this host has in the directory that its settings name.

    + plan: the host
    + models: of its services
    """
    directory = plan.settings.bundle.export_to
    if directory is None:
        yield refusal(
            f"{host.name}: the fleet file does not say where to: set bundle.export_to to a directory on this host, on "
            "a mounted disk"
        )
        return
    request = export_request(plan, models, read_lock(load_fleet().path))
    found = host.get_fact(BundleOnHost, directory=directory)
    if found is None:
        yield from unreadable(f"the bundle in {directory}")
    elif found.key == request["key"] and not found.problems:
        host.noop(f"{directory} is whole: {found.files} files")
    else:
        yield from run_job(export_job(request))
