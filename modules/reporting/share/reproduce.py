"""A share → a service of a fleet file that runs the same, and a named baseline that it is held against."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from modules.catalog import Catalog
from modules.fleet.compose import profile_flags
from modules.gating.direction import lower_is_better
from modules.reporting.share.block import Share, SharedImage, SharedModel, SharedResult, ShareError
from modules.reporting.share.workloads import fleet_document
from modules.spec.baseline import Baseline, Figure
from modules.spec.image import Recipe
from modules.spec.model import Model
from modules.spec.settings import OWN_PROFILE

Document = dict[str, Any]

# Shares by which another machine may be worse, as in the catalog's own gates; more where the runs themselves scatter.
_DECODE, _OTHERS = (0.05, 0.15), (0.15, 1 / 3)
_SPREADS = (3.0, 6.0)
# What single requests decide is told, and not asked for.
_TAIL = re.compile(r"\bp99\b")
# Beyond this a bound says nothing.
_WIDEST = 0.9


def source_of(share: Share) -> str:
    """Where a figure comes from, as baselines and gates name it."""
    kind = "a simulated host" if share.hardware.simulated else share.hardware.gpu
    return f"share block of {share.measured}, measured on {kind}"


def service_of(share: Share, catalog: Catalog) -> Document:
    """The service as a fleet file writes it: what differs from this catalog, and no more.

    Raises `ShareError`: this catalog has not the engine, profile or recipe, or the block's image can not be expressed.
    """
    engine = catalog.engines.get(share.engine)
    if engine is None or share.profile not in {*engine.profiles, OWN_PROFILE}:
        raise ShareError(f"this catalog has no engine {share.engine} with a profile {share.profile}")
    chosen = _model(share.model, catalog)
    known = catalog.models[chosen] if isinstance(chosen, str) else Model.model_validate(chosen)
    merged = profile_flags(engine, share.engine, share.profile, known)
    ours = {name: value for name, value in merged.items() if value is not False}
    flags = {name: value for name, value in share.flags.items() if ours.get(name) != value}
    flags |= {name: False for name in ours if name not in share.flags and f"flags.{name}" not in share.left_out}
    service: Document = {"engine": share.engine, "model": chosen, "profile": share.profile}
    image = _image(share.image, engine.recipe, catalog)
    for key, value in (("image", image), ("flags", flags), ("environment", share.environment)):
        if value:
            service[key] = _plain(value)
    service["gate"] = gate_of(share)
    return service


def gate_of(share: Share) -> Document:
    """The same workload, with bounds from what was measured."""
    return {
        **_plain(fleet_document(share.workloads)),
        # Decode first, as it is what people look for.
        "thresholds": {
            name: _bounds(name, one)
            for name, one in sorted(share.results.items(), key=lambda item: not item[0].startswith("tg"))
            if not _TAIL.search(name)
        },
        "source": source_of(share),
    }


def baseline_of(share: Share) -> Baseline:
    """What was measured, in the form of the catalog's baselines."""
    figures = {name: Figure(value=one.mean, std=one.std, unit=one.unit) for name, one in share.results.items()}
    flags = " ".join(f"--{name}" if value is True else f"--{name} {value}" for name, value in share.flags.items())
    caveats = ["measured on a simulated host: says nothing about a DGX Spark"] if share.hardware.simulated else []
    caveats += [f"private values were left out: {', '.join(share.left_out)}"] if share.left_out else []
    return Baseline(
        engine=share.engine,
        model=share.model.served_as,
        workload="; ".join(share.workloads.commands),
        settings=flags or None,
        figures=figures,
        caveat="; ".join(caveats) or None,
        measured=share.measured,
        source=source_of(share),
    )


def fleet_text(share: Share, catalog: Catalog, fleet: Document, name: str) -> str:
    """A fleet file with the hosts of `fleet`, on all of which the share's service is served under `name`.

    Raises `ShareError`: see `service_of`.
    """
    service = service_of(share, catalog)
    defaults = {**(fleet.get("defaults") or {}), "services": {name: service}}
    groups = {group: _without_services(settings) for group, settings in (fleet.get("groups") or {}).items()}
    hosts = {host: _host(settings or {}) for host, settings in (fleet.get("hosts") or {}).items()}
    document = {**fleet, "fleet": name, "defaults": defaults, **({"groups": groups} if groups else {}), "hosts": hosts}
    header = f"# Reproduces a {source_of(share)}, under the name {name}.\n"
    for key in share.left_out:
        header += f"# Left out there since it was private, and to be set by you: {key}\n"
    return header + yaml.safe_dump(document, sort_keys=False, width=110, allow_unicode=True)


def _host(host: Document) -> Document:
    settings = _without_services(host.get("settings") or {})
    return {
        **{key: value for key, value in host.items() if key != "settings"},
        **({"settings": settings} if settings else {}),
    }


def _without_services(settings: Mapping[str, Any] | None) -> Document:
    return {key: value for key, value in (settings or {}).items() if key != "services"}


def _model(model: SharedModel, catalog: Catalog) -> str | Document:
    for name, known in catalog.models.items():
        if (known.repository, known.revision, known.file, known.served_as) == (
            model.repository,
            model.commit,
            model.file,
            model.served_as,
        ):
            return name
    fields = model.model_dump(mode="json", exclude={"commit"})
    written = {**fields, "revision": model.commit, "source": "a share block"}
    defaults = Model.model_fields
    return {
        key: value for key, value in written.items() if key not in defaults or value != _default(defaults[key].default)
    }


def _default(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _image(image: SharedImage, engine_recipe: str, catalog: Catalog) -> Document:
    recipe = catalog.images.get(image.recipe)
    if recipe is None:
        raise ShareError(f"this catalog has no image recipe {image.recipe}")
    _expressible(image, recipe)
    found: Document = {} if image.recipe == engine_recipe else {"recipe": image.recipe}
    for key in ("base", "architecture", "digest"):
        value = getattr(image, key)
        if value is not None and value != getattr(recipe, key):
            found[key] = value
    pins = {name: pin.model_dump(mode="json") for name, pin in image.pins.items() if recipe.pins[name] != pin}
    packages = {name: value for name, value in image.packages.items() if recipe.packages.get(name) != value}
    arguments = {name: value for name, value in image.arguments.items() if recipe.arguments.get(name) != value}
    found |= {key: value for key, value in (("pins", pins), ("packages", packages), ("arguments", arguments)) if value}
    return found


def _expressible(image: SharedImage, recipe: Recipe) -> None:
    """A fleet file changes what a recipe has; it neither takes anything away nor gives it other source trees."""
    if image.pins.keys() != recipe.pins.keys():
        raise ShareError(
            f"recipe {image.recipe} has other source trees here ({', '.join(recipe.pins) or 'none'}) than in the block "
            f"({', '.join(image.pins) or 'none'}): use the version of Tinderbox that wrote it"
        )
    if image.reference != recipe.reference and (image.digest is None or _untagged(image) != _untagged(recipe)):
        raise ShareError(f"recipe {image.recipe} pulls {recipe.reference} here, and the block {image.reference}")
    more = [*(recipe.packages.keys() - image.packages.keys()), *(recipe.arguments.keys() - image.arguments.keys())]
    if more:
        raise ShareError(f"recipe {image.recipe} sets more here than in the block: {', '.join(sorted(more))}")


def _untagged(image: SharedImage | Recipe) -> str:
    """The repository of a pulled image: a digest is only good there."""
    registry, slash, rest = (image.reference or "").rpartition("/")
    return registry + slash + rest.partition(":")[0]


def _bounds(name: str, result: SharedResult) -> Document:
    warn, fail = (
        min(_WIDEST, max(least, spreads * result.std / result.mean))
        for least, spreads in zip(_DECODE if name.startswith("tg") else _OTHERS, _SPREADS, strict=True)
    )
    shares = (fail, warn) if warn < fail else (fail,)
    # A time may grow as a speed may fall: prefill and the first answer are two words for the same.
    lower = lower_is_better(name)
    bounds = [result.mean / (1 - one) if lower else result.mean * (1 - one) for one in shares]
    return dict(zip(("max", "warn_max") if lower else ("min", "warn_min"), map(_rounded, bounds), strict=False))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _plain(value: Any) -> Any:
    """Tuples as lists, which is what YAML has."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
