"""Models that a fleet file describes for its services to name, beside those of the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from modules.catalog import Catalog
from modules.catalog.catalog import flag_fault
from modules.fleet.flag_check import number_faults
from modules.fleet.problem import Problem
from modules.fleet.suggest import advice
from modules.fleet.tree import Tree, find
from modules.fleet.validate import validated
from modules.spec.model import Model
from modules.spec.settings import HostSettings, ModelChoice

_STAND_IN = Model(repository="not/read", served_as="not-read", source="a model that is wrong")


def own_models(tree: Tree) -> dict[str, Model]:
    """Those of the whole file's tree. What is wrong with one is told with the file, which is then refused."""
    named = tree.child("models")
    entries = (named.keys or {}) if named is not None else {}
    read = {name: validated(Model, entry) for name, entry in entries.items()}
    # One that is wrong is told of once, and not again by each service that names it.
    return {name: model if isinstance(model, Model) else _STAND_IN for name, model in read.items()}


def with_models(catalog: Catalog, models: Mapping[str, Model]) -> Catalog:
    """The catalog with these models beside its own; of one name, the catalog's."""
    return catalog.model_copy(update={"models": {**models, **catalog.models}}) if models else catalog


def model_problems(models: Mapping[str, Model], catalog: Catalog, tree: Tree) -> Iterator[Problem]:
    """Tell what no model knows by itself: a name that is taken, and what its entry refers to."""
    secrets = find(tree, ("secrets",)).tree.keys or {}
    for name, model in models.items():
        key = ("models", name)
        if name in catalog.models:
            todo = f"choose another name, or take this out and use the catalog's ({catalog.models[name].repository})"
            yield Problem(find(tree, key).origin, "the catalog has a model of this name", todo)
        for encoding in model.encodings:
            if encoding not in catalog.encodings:
                what = f"unknown encoding {encoding!r}"
                todo = advice(encoding, catalog.encodings, "encodings")
                yield Problem(find(tree, (*key, "encodings")).origin, what, todo)
        if model.token is not None and model.token not in secrets:
            what = "this is no name of a secret of this fleet"
            todo = "declare it under secrets: and write its name here, never its value"
            yield Problem(find(tree, (*key, "token")).origin, what, todo)
        for engine, flags in model.flags.items():
            if engine not in catalog.engines:
                todo = advice(engine, catalog.engines, "engines")
                yield Problem(find(tree, (*key, "flags", engine)).origin, f"unknown engine {engine!r}", todo)
            for flag, what, todo in number_faults(flags, catalog.flags.get(engine)):
                yield Problem(find(tree, (*key, "flags", engine, flag)).origin, what, todo)


def model_remarks(models: Mapping[str, Model], catalog: Catalog, tree: Tree) -> Iterator[Problem]:
    """Flags and parsers of these models that the catalog does not know of their engines."""
    for name, model in models.items():
        for engine, flags in model.flags.items():
            for flag, value in flags.items():
                if engine in catalog.flags and (what := flag_fault(catalog.flags[engine], flag, value)):
                    place = find(tree, ("models", name, "flags", engine, flag)).origin
                    yield Problem(place, f"{what}, as far as the catalog knows", "the image is asked before a restart")


def with_own_models(settings: HostSettings, models: Mapping[str, Model]) -> HostSettings:
    """The settings with each of these models in the place of its name."""

    def chosen(named: ModelChoice) -> ModelChoice:
        return models.get(named, named) if isinstance(named, str) else named

    services = {}
    for name, service in settings.services.items():
        draft = service.speculative
        changed = None if draft is None else draft.model_copy(update={"model": chosen(draft.model)})
        services[name] = service.model_copy(update={"model": chosen(service.model), "speculative": changed})
    return settings.model_copy(update={"services": services}) if models else settings
