"""Put together what a service runs from the catalog's entries and the fleet file's changes to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from modules.catalog import Catalog
from modules.spec.engine import Engine, FlagValue
from modules.spec.image import ImageOverride, Recipe
from modules.spec.model import Model
from modules.spec.settings import OWN_PROFILE, Service

# How the engines call the longest sequence, of whatever many requests.
_LENGTHS = ("max-model-len", "context-length")


def chosen_recipe(engine: Engine, override: ImageOverride, recipes: Mapping[str, Recipe]) -> Recipe | None:
    """Give the recipe that a service starts from: the engine's, or another; None where there is none of that name."""
    chosen = override.recipe or engine.recipe
    return recipes.get(chosen) if isinstance(chosen, str) else chosen


def composed_recipe(recipe: Recipe, override: ImageOverride) -> Recipe:
    """Lay a fleet file's changes over a recipe; pins and a triple that it does not have are passed over.

    Raises `ValidationError`: the outcome is no recipe that can be built or pulled.
    """
    fields: dict[str, Any] = recipe.model_dump()
    triple = recipe.triples.get(override.triple or "")
    if triple is not None:
        fields["base"] = triple.base or recipe.base
        for name, commit in triple.commits.items():
            fields["pins"][name]["commit"] = commit
    for name in ("base", "architecture", "digest"):
        value = getattr(override, name)
        if value is not None:
            fields[name] = value
    for name, pin in override.pins.items():
        if name in recipe.pins:
            fields["pins"][name] |= pin.model_dump(exclude_none=True)
    fields["packages"] |= override.packages
    fields["arguments"] |= override.arguments
    return Recipe.model_validate(fields)


def recipe_faults(recipe: Recipe, override: ImageOverride) -> list[tuple[tuple[str, ...], str]]:
    """Tell what a fleet file's changes break in a recipe: key and what is wrong."""
    try:
        composed_recipe(recipe, override)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        return [((*map(str, d["loc"]), *d.get("ctx", {}).get("key", ())), d["msg"]) for d in details]
    return []


def profile_flags(engine: Engine, engine_name: str, profile: str, model: Model) -> dict[str, FlagValue]:
    """Merge the flags of the engine, its profile and the model; false stands for a flag that is taken away."""
    if profile == OWN_PROFILE:
        return {}
    flags: dict[str, FlagValue] = {**engine.flags, **engine.profiles[profile]}
    for name in _LENGTHS:
        length = flags.get(name)
        if model.context is not None and isinstance(length, int) and length > model.context:
            flags[name] = model.context
    return flags | model.flags.get(engine_name, {})


def composed_flags(engine: Engine, service: Service, model: Model) -> dict[str, FlagValue]:
    """Merge the flags of the engine, its profile, model, draft and cluster, and the service; false takes one away."""
    wish = service.speculative if service.profile != OWN_PROFILE else None
    drafted = {} if wish is None else engine.speculative.get(wish.method, {})
    own = profile_flags(engine, service.engine, service.profile, model)
    flags = {**own, **drafted, **_spanning(engine, service), **service.flags}
    return {name: value for name, value in flags.items() if value is not False}


def model_of(service: Service, catalog: Catalog) -> Model | None:
    """The model that a service serves; None where there is none of that name."""
    return catalog.models.get(service.model) if isinstance(service.model, str) else service.model


def _spanning(engine: Engine, service: Service) -> dict[str, FlagValue]:
    """What spans hosts: the engine's own flags for it, and one GPU a host where the service does not spread it."""
    spread, cluster = engine.multi_node, service.cluster
    if spread is None or cluster is None:
        return {}
    sized = any(flag in service.flags for flag in spread.sizes)
    return {**spread.flags, **({} if sized else {spread.sizes[0]: len(cluster.hosts)})}


def composed_engine(engine: Engine, service: Service) -> Engine:
    """Lay the service's readiness over its engine's, key by key."""
    changes = service.readiness.model_dump(exclude_none=True)
    return engine.model_copy(update={"readiness": engine.readiness.model_copy(update=changes)})


def draft_of(service: Service, catalog: Catalog) -> Model | None:
    """The draft model that a service names, if it names one."""
    if service.speculative is None:
        return None
    chosen = service.speculative.model
    return catalog.models[chosen] if isinstance(chosen, str) else chosen
