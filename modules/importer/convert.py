"""From a recipe of another project to a service of a fleet file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from modules.catalog import Catalog
from modules.importer.command import Server, server_of
from modules.importer.flags import parse_flags
from modules.importer.images import ChosenImage, choose_image
from modules.importer.models import model_entry
from modules.importer.parts import draft_of, variables_of
from modules.importer.recipe import RefusedError, SourceRecipe
from modules.importer.spread import cluster_size, must_fit, on_one_host, told_on_one
from modules.spec.engine import Engine, FlagValue
from modules.spec.settings import OWN_PROFILE

Status = Literal["read", "partly", "refused"]
# Flags of a service's own keys, as vLLM, SGLang and llama.cpp call them.
_MODEL = ("model", "model-path", "hf-repo")
_SERVED_AS = ("served-model-name", "alias")
# Their programs set these themselves when they start several hosts, or take them out.
_THEIRS = ("nnodes", "node-rank", "master-addr", "master-port", "headless", "dist-init-addr")
_SECRET = ("api-key", "hf-token")
# Of these, the value may be a file, which their mods put into the image.
_FILES = ("chat-template", "reasoning-parser-plugin", "tool-parser-plugin")


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
    alone = recipe.nodes == 1 or (recipe.solo and solo)
    server = server_of(on_one_host(recipe) if alone else recipe)
    image = choose_image(server.program, recipe.image, recipe.form, catalog, source)
    return converted_server(recipe, server, image, name=name, source=source, catalog=catalog, alone=alone)


def converted_server(
    recipe: SourceRecipe, server: Server, image: ChosenImage, *, name: str, source: str, catalog: Catalog, alone: bool
) -> Imported:
    """The service that a server's command line is. `alone`: on one host.

    Raises `RefusedError`: nothing of ours could serve it.
    """
    engine = catalog.engines[image.engine]
    given = parse_flags(server.words, catalog.flags[image.engine])
    left = [*recipe.left, *server.left, *image.left, *given.left]
    flags = dict(given.flags)
    service: dict[str, Any] = {"engine": image.engine}
    aliases = _further_names(flags)
    service["model"] = _model(recipe, flags, given.alone, _Place(source, catalog, left))
    if aliases and engine.several_names:
        service["aliases"] = list(aliases)
    elif aliases:
        left.append(f"served-model-name: {', '.join(aliases)}: engine {image.engine} serves a model by one name")
    service["profile"] = OWN_PROFILE
    hosts = told_on_one(recipe, flags, left) if alone else cluster_size(recipe, flags)
    _address(flags, engine, service, left, shared=hosts > 1)
    must_fit(service["model"], hosts, catalog)
    left += list(_taken_out(flags, hosts))
    left += [f"{flag}: the image must hold the file {flags[flag]}" for flag in _FILES if _is_file(flags.get(flag))]
    if drafted := draft_of(flags, source, catalog, left):
        service["speculative"] = drafted
    if image.override:
        service["image"] = dict(image.override)
    environment = {**recipe.environment, **server.environment}
    if kept := dict(variables_of(environment, left)):
        service["environment"] = kept
    service["flags"] = dict(sorted(flags.items()))
    status: Status = "partly" if left else "read"
    return Imported(name, source, recipe.form, status, service, hosts, tuple(left), dict(given.flags))


@dataclass(frozen=True)
class _Place:
    source: str
    catalog: Catalog
    left: list[str]


def _names(value: FlagValue) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, tuple) else (str(value),)


def _further_names(flags: Mapping[str, FlagValue]) -> tuple[str, ...]:
    """By which the model is served, too, each once."""
    first, *others = next((_names(flags[flag]) for flag in _SERVED_AS if flag in flags), ("",))
    return tuple(one for one in dict.fromkeys(others) if one != first)


def _model(
    recipe: SourceRecipe, flags: dict[str, FlagValue], alone: tuple[str, ...], place: _Place
) -> str | dict[str, Any]:
    named = [str(flags.pop(flag)) for flag in _MODEL if flag in flags]
    written = next(iter([*alone[:1], *named]), recipe.model)
    for word in alone[1:]:
        raise RefusedError(f"{word!r} in its command belongs to no flag")
    served = [flags.pop(flag) for flag in _SERVED_AS if flag in flags]
    names = _names(served[0]) if served else ()
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


def _address(
    flags: dict[str, FlagValue], engine: Engine, service: dict[str, Any], left: list[str], *, shared: bool
) -> None:
    port, host = flags.pop("port", None), flags.pop("host", None)
    if isinstance(port, int) and port >= 1024:
        service["port"] = port
    elif port is not None:
        left.append(f"port: {port} is none that a service may have (1024 or above): 8000 instead")
    if host in (None, "127.0.0.1", "localhost"):
        return
    if shared:
        left.append(f"host: {host} is open to others: name an api_key and listen, since a cluster makes no key itself")
        return
    if engine.api_key_variable is None:
        left.append(f"host: {host} is open to others, and this engine takes no key that can be kept secret: loopback")
        return
    service["listen"] = "0.0.0.0" if host in ("0.0.0.0", "::", "*") else str(host)  # noqa: S104, as the recipe says


def _is_file(value: FlagValue | None) -> bool:
    return isinstance(value, str) and value.endswith((".jinja", ".py"))


def _taken_out(flags: dict[str, FlagValue], hosts: int) -> Iterator[str]:
    backend = flags.get("distributed-executor-backend")
    if hosts > 1 and backend not in (None, "ray"):
        yield f"distributed-executor-backend: {flags.pop('distributed-executor-backend')} is the cluster's to say"
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
