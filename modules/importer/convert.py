"""From a recipe of another project to a service of a fleet file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from modules.catalog import Catalog
from modules.fleet.inline_secret import looks_secret
from modules.importer.command import server_of
from modules.importer.flags import parse_flags
from modules.importer.images import choose_image
from modules.importer.models import model_entry
from modules.importer.recipe import RefusedError, SourceRecipe
from modules.spec.engine import Engine, FlagValue
from modules.spec.settings import OWN_PROFILE, Service

Status = Literal["read", "partly", "refused"]
# Flags of a service's own keys, as vLLM, SGLang and llama.cpp call them.
_MODEL = ("model", "model-path", "hf-repo")
_SERVED_AS = ("served-model-name", "alias")
_PARALLEL = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "tp-size", "pp-size", "dp-size")
# Their programs set these themselves when they start several hosts, or take them out.
_THEIRS = ("nnodes", "node-rank", "master-addr", "master-port", "headless", "dist-init-addr")
_SECRET = ("api-key", "hf-token")
# Of these, the value may be a file, which their mods put into the image.
_FILES = ("chat-template", "reasoning-parser-plugin", "tool-parser-plugin")
# Where our container has it: weights at weights.home, read-only and offline.
_PLACES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "HF_HUB_OFFLINE", "LLAMA_CACHE")
_DRAFT = "{draft}"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CLUSTERS = "cluster" in Service.model_fields


@dataclass(frozen=True)
class Imported:
    """What came of one recipe. `service`: as a fleet file writes it, without the hosts of a cluster; None: refused.

    `hosts`: how many the service is spread over. `left`: what was not carried over as it stands, and why. `given`: the
    flags of the recipe's command by their long names, for whoever wants to compare.
    """

    name: str
    source: str
    form: str
    status: Status
    service: Mapping[str, Any] | None = None
    hosts: int = 1
    left: tuple[str, ...] = ()
    given: Mapping[str, FlagValue] | None = None


def convert(recipe: SourceRecipe, source: str, catalog: Catalog, *, solo: bool = False) -> Imported:
    """Make a service of a recipe. `source`: where it comes from. `solo`: on one host, where the recipe allows it."""
    name = service_name(recipe.name)
    try:
        return _converted(recipe, name, source, catalog, solo)
    except RefusedError as refused:
        return Imported(name, source, recipe.form, "refused", left=(str(refused), *recipe.left))


def service_name(text: str) -> str:
    """A name that a service can have: lower case, digits, dashes, a letter first."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    named = words if words[:1].isalpha() else f"model-{words}"
    return named[:48].strip("-")


def _converted(recipe: SourceRecipe, name: str, source: str, catalog: Catalog, solo: bool) -> Imported:
    server = server_of(recipe)
    image = choose_image(server.program, recipe.image, recipe.form, catalog, source)
    engine = catalog.engines[image.engine]
    given = parse_flags(server.words, catalog.flags[image.engine])
    left = [*recipe.left, *server.left, *image.left, *given.left]
    flags = dict(given.flags)
    service: dict[str, Any] = {"engine": image.engine}
    service["model"] = _model(recipe, flags, given.alone, _Place(source, catalog, left))
    service["profile"] = OWN_PROFILE
    _address(flags, engine, service, left)
    hosts = _hosts(recipe, flags, solo, left)
    _fits(service["model"], hosts, catalog)
    left += list(_taken_out(flags))
    left += [f"{flag}: the image must hold the file {flags[flag]}" for flag in _FILES if _is_file(flags.get(flag))]
    if drafted := _draft(flags, source, catalog, left):
        service["speculative"] = drafted
    if image.override:
        service["image"] = dict(image.override)
    environment = {**recipe.environment, **server.environment}
    if kept := dict(_environment(environment, left)):
        service["environment"] = kept
    service["flags"] = dict(sorted(flags.items()))
    status: Status = "partly" if left else "read"
    return Imported(name, source, recipe.form, status, service, hosts, tuple(left), dict(given.flags))


@dataclass(frozen=True)
class _Place:
    source: str
    catalog: Catalog
    left: list[str]


def _model(
    recipe: SourceRecipe, flags: dict[str, FlagValue], alone: tuple[str, ...], place: _Place
) -> str | dict[str, Any]:
    named = [str(flags.pop(flag)) for flag in _MODEL if flag in flags]
    written = next(iter([*alone[:1], *named]), recipe.model)
    for word in alone[1:]:
        raise RefusedError(f"{word!r} in its command belongs to no flag")
    served = [flags.pop(flag) for flag in _SERVED_AS if flag in flags]
    names = served[0] if served and isinstance(served[0], tuple) else tuple(str(one) for one in served[:1])
    if len(names) > 1:
        place.left.append(f"served-model-name: only the first of {', '.join(names)}")
    revision = flags.pop("revision", None) or recipe.revision
    file = flags.pop("hf-file", None)
    return model_entry(
        written,
        place.catalog,
        source=place.source,
        served_as=names[0] if names else written,
        revision=None if revision is None else str(revision),
        file=None if file is None else str(file),
        task=recipe.task,
        pooled=flags.get("runner") == "pooling",
    )


def _address(flags: dict[str, FlagValue], engine: Engine, service: dict[str, Any], left: list[str]) -> None:
    port, host = flags.pop("port", None), flags.pop("host", None)
    if isinstance(port, int) and port >= 1024:
        service["port"] = port
    elif port is not None:
        left.append(f"port: {port} is none that a service may have (1024 or above): 8000 instead")
    if host in (None, "127.0.0.1", "localhost"):
        return
    if engine.api_key_variable is None:
        left.append(f"host: {host} is open to others, and this engine takes no key that can be kept secret: loopback")
        return
    service["listen"] = "0.0.0.0" if host in ("0.0.0.0", "::", "*") else str(host)  # noqa: S104, as the recipe says


def _hosts(recipe: SourceRecipe, flags: dict[str, FlagValue], solo: bool, left: list[str]) -> int:
    if recipe.nodes == 1:
        return 1
    if recipe.solo and (solo or not CLUSTERS):
        for flag in _PARALLEL:
            if flag in flags and flags[flag] != 1:
                left.append(f"{flag}: 1 in place of {flags[flag]}, as their program does it on one host")
                flags[flag] = 1
        return 1
    if not CLUSTERS:
        raise RefusedError(f"it needs {recipe.nodes} hosts, and a service of ours is served by one")
    return recipe.nodes


def _fits(model: str | dict[str, Any], hosts: int, catalog: Catalog) -> None:
    sparks = catalog.models[model].sparks if isinstance(model, str) else int(model.get("sparks", 1))
    if sparks > hosts:
        raise RefusedError(f"its model needs {sparks} Sparks, and it would be spread over {hosts}")


def _is_file(value: FlagValue | None) -> bool:
    return isinstance(value, str) and value.endswith((".jinja", ".py"))


def _taken_out(flags: dict[str, FlagValue]) -> Iterator[str]:
    for flag in _THEIRS:
        if flag in flags:
            yield f"{flag}: {flags.pop(flag)} is the fleet's to say: services.<name>.cluster"
    if flags.get("distributed-executor-backend") == "ray":
        yield "distributed-executor-backend: ray is left out, as their programs do"
        del flags["distributed-executor-backend"]
    for flag in _SECRET:
        if flag in flags:
            del flags[flag]
            yield f"{flag}: a secret has no place in a command: name one under secrets, and as api_key or model.token"


def _draft(flags: dict[str, FlagValue], source: str, catalog: Catalog, left: list[str]) -> dict[str, Any] | None:
    """A draft model that the flags name is fetched like any model, and stands in them by its place on the host."""
    for flag in ("speculative-config.model", "speculative-draft-model-path", "speculative-draft-model"):
        if flag in flags:
            written, flags[flag] = str(flags[flag]), _DRAFT
            return _drafted(written, source, catalog)
    config = flags.get("speculative-config")
    if not isinstance(config, str):
        return None
    try:
        found = json.loads(config)
    except ValueError:
        left.append("speculative-config: no JSON, so no draft model is fetched for it")
        return None
    draft = found.get("model") if isinstance(found, dict) else None
    if not isinstance(draft, str):
        return None
    flags["speculative-config"] = config.replace(f'"{draft}"', f'"{_DRAFT}"')
    return _drafted(draft, source, catalog)


def _drafted(written: str, source: str, catalog: Catalog) -> dict[str, Any]:
    model = model_entry(written, catalog, source=source, served_as=written, what="draft model")
    # How it drafts is said by the recipe's own flags; the catalog's for this method are none of profile own.
    return {"model": model, "method": "eagle3"}


def _environment(environment: Mapping[str, Any], left: list[str]) -> Iterator[tuple[str, str]]:
    for name, value in environment.items():
        text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        if not _NAME.fullmatch(str(name)):
            left.append(f"env.{name}: no name of a variable")
        elif looks_secret(str(name), text):
            left.append(f"env.{name}: a secret has no place in a file: name one under secrets")
        elif name in _PLACES:
            left.append(f"env.{name}: where weights lie is weights.home here")
        elif "$" in text or "\n" in text:
            left.append(f"env.{name}: {text[:40]!r} is for a shell to work out")
        else:
            yield str(name), text
