"""Services and releases to try things on."""

from __future__ import annotations

from modules.catalog import load_catalog
from modules.fleet import ServicePlan
from modules.fleet.compose import composed_flags, draft_of
from modules.release.build import Surroundings, build_release
from modules.spec.gate import Gate
from modules.spec.release import Release
from modules.spec.settings import Service

COMMIT = "a" * 40
IMAGE = "tinderbox/engine:0123456789ab"
HOME = "/var/lib/tinderbox/huggingface"


def service_plan(engine: str = "vllm-cpu", model: str = "lab-gpt-oss-tiny", **settings: object) -> ServicePlan:
    """A service named `gpt-oss`; `settings` as in a fleet file."""
    catalog = load_catalog()
    service = Service.model_validate({"engine": engine, "model": model, "profile": "latency", **settings})
    entry = catalog.engines[engine]
    gate = catalog.gates[service.gate] if isinstance(service.gate, str) else service.gate
    return ServicePlan(
        name="gpt-oss",
        service=service,
        engine=entry,
        model=catalog.models[model],
        recipe=catalog.images[entry.recipe],
        flags=composed_flags(entry, service, catalog.models[model]),
        gate=gate,
        encodings={name: catalog.encodings[name] for name in catalog.models[model].encodings},
        draft=draft_of(service, catalog),
    )


def surroundings(
    image: str = IMAGE,
    systemd: int = 255,
    commit: str = COMMIT,
    secrets: dict[str, str] | None = None,
    made_key: str | None = None,
    draft_commit: str | None = None,
) -> Surroundings:
    """A host with everything that a release needs."""
    return Surroundings(image, commit, HOME, systemd, secrets or {}, made_key, draft_commit)


def release(**settings: object) -> Release:
    """The release of such a service."""
    return build_release(service_plan(**settings), surroundings())  # type: ignore[arg-type]


def lab_gate(**changes: object) -> Gate:
    """A gate of two metrics."""
    document = {
        "workload": {"pp": [512], "tg": [32], "runs": 3, "coherence": False},
        "thresholds": {"tg32@pp512 c1": {"min": 5, "warn_min": 50}, "pp512 c1": {"min": 5}},
    }
    return Gate.model_validate({**document, **changes})
