"""Which models a host needs. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from modules.fleet import HostPlan
from modules.spec.model import Model


def needed(models: Iterable[Model]) -> list[Model]:
    """The models, each repository's revision once, with all files that any of those who share it wants."""
    merged: dict[tuple[str, str], Model] = {}
    for model in models:
        key = (model.repository, model.revision)
        merged[key] = _both(merged[key], model) if key in merged else model
    return list(merged.values())


def everywhere(plans: Iterable[HostPlan]) -> list[tuple[str, str]]:
    """Repository and revision of all models that any of the hosts serves, in one order."""
    return sorted({(model.repository, model.revision) for plan in plans for model in plan.models})


def _both(one: Model, other: Model) -> Model:
    # Patterns can not say "either"; this takes at least what each of them takes.
    either = one.include and other.include
    return one.model_copy(
        update={
            "include": tuple(dict.fromkeys((*one.include, *other.include))) if either else (),
            "exclude": tuple(pattern for pattern in one.exclude if pattern in other.exclude),
            "token": one.token or other.token,
        }
    )
