"""Over how many hosts an imported service is spread."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from modules.catalog import Catalog
from modules.importer.recipe import RefusedError, SourceRecipe
from modules.spec.engine import FlagValue

# As recipes call them for their commands, and as vLLM and SGLang do.
_SIZES = ("tensor_parallel", "pipeline_parallel", "data_parallel")
_PARALLEL = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "tp-size", "pp-size", "dp-size")


def on_one_host(recipe: SourceRecipe) -> SourceRecipe:
    """The recipe as their programs run it on one host: whatever follows from the number of GPUs, in JSON too."""
    ones = {name: 1 for name in _SIZES if recipe.parameters.get(name) not in (None, 1)}
    return replace(recipe, parameters={**recipe.parameters, **ones}) if ones else recipe


def told_on_one(recipe: SourceRecipe, flags: dict[str, FlagValue], left: list[str]) -> int:
    """One, with the flags for one GPU; `left` is told of those that were for more."""
    wished = {name: recipe.parameters[name] for name in _SIZES if recipe.parameters.get(name) not in (None, 1)}
    left += [f"{name}: 1 in place of {size}, as their program does it on one host" for name, size in wished.items()]
    for flag in _PARALLEL:
        if flags.get(flag, 1) != 1:
            if not wished:
                left.append(f"{flag}: 1 in place of {flags[flag]}: the service is on one host")
            flags[flag] = 1
    return 1


def cluster_size(recipe: SourceRecipe, flags: Mapping[str, FlagValue]) -> int:
    """How many hosts. Raises `RefusedError`: the flags are for another number, or spread it as ours do not."""
    sizes = [int(str(flags.get(flag, 1))) for flag in _PARALLEL if str(flags.get(flag, 1)).isdecimal()]
    if math.prod(sizes) != recipe.nodes:
        told = ", ".join(f"{flag} {flags[flag]}" for flag in _PARALLEL if flag in flags) or "no size in its command"
        raise RefusedError(f"it is for {recipe.nodes} hosts, and {told} is not for so many GPUs")
    if any(str(flags.get(flag, 1)) != "1" for flag in ("data-parallel-size", "dp-size")):
        raise RefusedError("it spreads copies of the model over hosts (data parallel), which a cluster here does not")
    return recipe.nodes


def must_fit(model: str | dict[str, Any], hosts: int, catalog: Catalog) -> None:
    """Raises `RefusedError`: the catalog knows that the model needs more hosts."""
    sparks = catalog.models[model].sparks if isinstance(model, str) else int(model.get("sparks", 1))
    if sparks > hosts:
        raise RefusedError(f"its model needs {sparks} Sparks, and it would be spread over {hosts}")
