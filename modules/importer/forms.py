"""From a recipe's YAML to `SourceRecipe`, by the form that it has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from modules.importer.recipe import Document, Form, NoRecipeError, SourceRecipe
from modules.importer.tables import CARRIED, NOT_CARRIED, PULSE, SAID, SPARKRUN, TASKS

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_recipe(text: str, name: str) -> SourceRecipe:
    """Read one recipe, to be called `name`: the recipes' own names are for people, and alike now and then.

    Raises `NoRecipeError`: it is none, or of a form that is not known.
    """
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506, a safe loader, in C where there
    except yaml.YAMLError as error:
        raise NoRecipeError(f"no valid YAML: {str(error).splitlines()[0]}") from None
    except (ValueError, RecursionError) as error:
        # As of 2026-02-30, which has the form of a date.
        raise NoRecipeError(f"no valid YAML: {error}") from None
    if not isinstance(document, dict):
        raise NoRecipeError("no mapping")
    form = _form(document)
    if not isinstance(document.get("model", ""), str):
        raise NoRecipeError("`model` is no text")
    return _pulse(document, name) if form == "spark-pulse" else _single(document, name, form)


def _form(document: Document) -> Form:
    if "engines" in document or "params" in document or "constraints" in document:
        return "spark-pulse"
    if "model" in document and ("runtime" in document or "metadata" in document or "min_nodes" in document):
        return "sparkrun"
    if "command" in document and "container" in document:
        # spark-pulse's version 1 and sparkrun's are this very form.
        return "spark-vllm-docker"
    if "model" in document and "defaults" in document:
        return "sparkrun"
    raise NoRecipeError("neither a command with a container, nor a model with engines or defaults")


def _single(document: Document, name: str, form: Form) -> SourceRecipe:
    """spark-vllm-docker's form, which sparkrun's extends."""
    defaults = _mapping(document, "defaults")
    command = document.get("command")
    runtime = str(document.get("runtime") or "") or None
    arguments: tuple[str, ...] = ()
    left = list(_left(document))
    if command is None:
        flags = SPARKRUN.get((runtime or "vllm").partition("-")[0], {})
        arguments = tuple(_flags(defaults, flags))
        left += [f"defaults.{key}: their program makes no flag of it" for key in defaults if key not in flags]
    parallel = 1
    for key in ("tensor_parallel", "pipeline_parallel", "data_parallel"):
        # Without a place in the command it is their program's to use.
        if command is None or f"{{{key}}}" in str(command):
            parallel *= _whole(defaults.get(key), 1)
    least = max(2 if document.get("cluster_only") else 1, _whole(document.get("min_nodes"), 1))
    solo = least == 1
    nodes = 1 if document.get("solo_only") or _whole(document.get("max_nodes"), 9) == 1 else max(least, parallel)
    model = str(document.get("model") or "")
    return SourceRecipe(
        form=form,
        name=name,
        model=model,
        command=None if command is None else str(command),
        arguments=arguments,
        doubled=form == "spark-vllm-docker",
        engine=runtime,
        revision=_text(document.get("model_revision")),
        parameters={**defaults, "model": model},
        environment=_mapping(document, "env"),
        image=_text(document.get("container")),
        nodes=nodes,
        solo=solo,
        left=tuple(left),
    )


def _pulse(document: Document, name: str) -> SourceRecipe:
    engines = _mapping(document, "engines")
    engine = str(document.get("engine") or next(iter(engines), "vllm"))
    chosen = engines.get(engine) or {}
    if not isinstance(chosen, Mapping):
        raise NoRecipeError(f"engines.{engine} is no mapping")
    parameters, constraints = _mapping(document, "params"), _mapping(document, "constraints")
    left = [*_left(document), *(f"engines.{engine}.{line}" for line in _left(chosen))]
    left += [f"engines.{other}: the recipe is read for {engine} alone" for other in engines if other != engine]
    arguments = list(_flags(parameters, PULSE.get(engine, {})))
    neutral = {key for flags in PULSE.values() for key in flags}
    left += [
        f"params.{key}: {engine} has no flag for it"
        for key in parameters
        if key in neutral and key not in PULSE.get(engine, neutral)
    ]
    task = TASKS.get(str(document.get("serves")), "generate")
    if task != "generate" and engine == "vllm":
        arguments += ["--runner", "pooling"]
    given = chosen.get("args") or ()
    if not isinstance(given, str | list | tuple):
        raise NoRecipeError(f"engines.{engine}.args is no list")
    own = [given] if isinstance(given, str) else [str(word) for word in given]
    parallel = _whole(parameters.get("tensor_parallel"), 1) * _whole(parameters.get("pipeline_parallel"), 1)
    least = max(2 if constraints.get("cluster_only") else 1, _whole(constraints.get("min_nodes"), 1))
    command = chosen.get("command") or document.get("command")
    return SourceRecipe(
        form="spark-pulse",
        name=name,
        model=str(document.get("model") or ""),
        command=None if command is None else str(command),
        arguments=() if command is not None else (*arguments, *own),
        doubled=True,
        engine=engine,
        parameters={**parameters, "model": document.get("model")},
        environment=_mapping(chosen, "env"),
        image=_text(chosen.get("image")),
        nodes=1 if constraints.get("solo_only") else max(least, parallel),
        solo=least == 1,
        task=task,  # type: ignore[arg-type]  # one of TASKS' values
        left=tuple(left),
    )


def _left(document: Document) -> Iterator[str]:
    for key, reason in NOT_CARRIED.items():
        value = document.get(key)
        if value:
            shown = ", ".join(str(one) for one in value) if isinstance(value, list) else ""
            yield f"{key}: {reason}{f' ({shown[:120]})' if shown else ''}"
    known = SAID | NOT_CARRIED.keys() | CARRIED
    for key in document:
        if key not in known:
            yield f"{key}: a key that is not known here"


def _flags(values: Document, names: Mapping[str, str]) -> Iterator[str]:
    for key, flag in names.items():
        value = values.get(key)
        if value is None or value is False:
            continue
        yield flag
        if value is not True:
            yield json.dumps(value) if isinstance(value, dict | list) else str(value)


def _mapping(document: Document, key: str) -> dict[str, Any]:
    value = document.get(key) or {}
    if not isinstance(value, dict):
        raise NoRecipeError(f"`{key}` is no mapping")
    return value


def _whole(value: object, otherwise: int) -> int:
    try:
        return int(str(value))
    except ValueError:
        return otherwise


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
