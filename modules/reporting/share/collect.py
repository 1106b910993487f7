"""A service's plan and its last results → what is shared of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from modules.fleet import ServicePlan
from modules.gating.direction import unit_of
from modules.images.reference import image_reference
from modules.reporting.measured import MeasuredService
from modules.reporting.share.block import Hardware, Share, SharedImage, SharedModel, SharedResult, ShareError
from modules.reporting.share.private import is_private, is_private_image, private_words
from modules.reporting.share.workloads import workloads_of
from modules.spec.answers import Answers
from modules.spec.engine import FlagValue
from modules.spec.fleet import ResolvedHost
from modules.spec.gate import Gate
from modules.spec.lock import Lock

# In place of a name that tells too much itself.
UNNAMED = "?"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_Value = TypeVar("_Value", bound=FlagValue)


def share_of(
    host: ResolvedHost, plan: ServicePlan, lock: Lock, measured: MeasuredService, driver: str | None = None
) -> Share:
    """Everything that another owner needs to run the same, and nothing that tells whose it is.

    Values that a fleet file gives and that could tell are left out, and named in `left_out`. Raises `ShareError`: the
    service has no gate or no figures, or its model or image are its owner's own.
    """
    if plan.gate is None or not measured.metrics:
        raise ShareError(f"{host.name}/{plan.name} has no figures to share: give it a gate and run stage gate")
    if plan.draft is not None:
        raise ShareError(f"{host.name}/{plan.name} has a draft model, which a block can not tell others of yet")
    words = private_words(host)
    flags, hidden_flags = _screened(plan.flags, plan.service.flags, words)
    variables, hidden_variables = _screened(plan.service.environment, plan.service.environment, words)
    gate, hidden_answers = _gate(plan.gate, words)
    hidden = [f"flags.{name}" for name in hidden_flags] + [f"environment.{name}" for name in hidden_variables]
    hidden += ["container"] if plan.service.container is not None else []
    return Share(
        measured=measured.measured[:10],
        hardware=Hardware(gpu=measured.gpu or "none", driver=driver, simulated=host.settings.hardware.simulated),
        engine=plan.service.engine,
        profile=plan.service.profile,
        model=_model(plan, lock, words),
        image=_image(plan, lock, words),
        flags=flags,
        environment=variables,
        left_out=(*hidden, *hidden_answers),
        workloads=workloads_of(gate, plan.model.repository, plan.model.served_as),
        results={
            name: SharedResult(mean=_short(one.mean), std=_short(one.std), runs=len(one.values), unit=unit_of(name))
            for name, one in measured.metrics.items()
            if one.mean > 0
        },
    )


def _screened(
    values: Mapping[str, _Value], own: Mapping[str, object], words: frozenset[str]
) -> tuple[dict[str, _Value], list[str]]:
    """Values without those of the fleet file's own that are private, by value or by name, and the names of these."""
    private = {name: is_private(re.sub(r"[_-]", " ", name), words) for name in values if name in own}
    hidden = [name for name in private if private[name] or is_private(str(values[name]), words)]
    told = [UNNAMED if private[name] else name for name in hidden]
    return {name: value for name, value in values.items() if name not in hidden}, told


def _gate(gate: Gate, words: frozenset[str]) -> tuple[Gate, list[str]]:
    """The gate without questions of the owner's own that are private, and the names of what was left out."""
    changes: dict[str, None] = {}
    if isinstance(gate.answers, Answers) and is_private(gate.answers.model_dump_json(), words):
        changes["answers"] = None
    return gate.model_copy(update=changes), [f"gate.{name}" for name in changes]


def _model(plan: ServicePlan, lock: Lock, words: frozenset[str]) -> SharedModel:
    model = plan.model
    commit = model.revision if _COMMIT.fullmatch(model.revision) else lock.commit(model.repository, model.revision)
    if commit is None:
        raise ShareError(f"the lock does not say which commit {model.repository} is at: run stage weights")
    if not isinstance(plan.service.model, str) and any(
        is_private(text, words) for text in (model.repository, model.served_as)
    ):
        raise ShareError(f"the model {model.repository} bears a name of yours, and nobody else could fetch it")
    return SharedModel(
        repository=model.repository,
        commit=commit,
        served_as=model.served_as,
        size_gib=model.size_gib,
        include=model.include,
        exclude=model.exclude,
        encodings=model.encodings,
        file=model.file,
    )


def _image(plan: ServicePlan, lock: Lock, words: frozenset[str]) -> SharedImage:
    recipe, own = plan.recipe, plan.service.image
    chosen = own.recipe or plan.engine.recipe
    if not isinstance(chosen, str):
        raise ShareError("the image is of a recipe that is written out in your fleet file, which nobody else has")
    for key, reference in (("base", recipe.base), ("reference", recipe.reference)):
        if reference is not None and is_private_image(reference):
            raise ShareError(f"image.{key} names a registry of your own ({reference}), which nobody else can reach")
    given = [(f"pins.{name}", pin.repository) for name, pin in own.pins.items() if pin.repository is not None]
    given += [(f"packages.{name}", value) for name, value in own.packages.items()]
    given += [(f"arguments.{name}", value) for name, value in own.arguments.items()]
    for key, value in given:
        if is_private(value, words):
            raise ShareError(f"image.{key} holds an address, a path or a name of yours: {value}")
    digest = recipe.digest
    if digest is None and recipe.reference is not None:
        digest = lock.digest(recipe.reference)
    return SharedImage(
        recipe=chosen,
        name=image_reference(recipe, lock),
        reference=recipe.reference,
        digest=digest,
        base=recipe.base,
        architecture=recipe.architecture,
        pins=recipe.pins,
        packages=recipe.packages,
        arguments=recipe.arguments,
    )


def _short(value: float) -> float:
    """Six digits are more than any run repeats."""
    return float(f"{value:.6g}")
