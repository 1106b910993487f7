"""A server that runs → a service of a fleet file, and what of it could not be carried over. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from modules.adopt.address import Listening, listening, value_of, without
from modules.adopt.image import image_of
from modules.adopt.observed import Observed, mount_of
from modules.adopt.parts import KEYS, TOKENS, container_of, secrets_of
from modules.adopt.weights import Stored, as_stored, stored, with_hub_names
from modules.catalog import Catalog
from modules.hostside.masking import MASK
from modules.importer.command import Server, started_by
from modules.importer.convert import converted_server, service_name
from modules.importer.images import ChosenImage
from modules.importer.recipe import RefusedError, SourceRecipe
from modules.spec.engine import Engine

_ENGINES = {"vllm": "vllm", "sglang": "sglang", "llama-server": "llama-cpp"}
# What says nothing of how it serves: docker, shells and the container's build set them.
_IDLE = re.compile(r"(HOME|PATH|PWD|HOSTNAME|LANG|TERM|USER|SHLVL|_|NVIDIA_VISIBLE_DEVICES|NVIDIA_DRIVER_CAPABILITIES)")
_SIZES = (
    "tensor-parallel-size",
    "pipeline-parallel-size",
    "data-parallel-size",
    "tp-size",
    "pp-size",
    "dp-size",
    "nnodes",
)
_SHORT = {"-tp": "tensor-parallel-size", "-pp": "pipeline-parallel-size", "-dp": "data-parallel-size"}


@dataclass(frozen=True)
class Piece:
    """What came of a server. `service`: as a fleet file writes it; None: nothing of ours could be it, `told` says why.

    `secrets`: name → where the fleet file is to look for it. `weights`: where they lie; None: they were not found.
    """

    server: Observed
    name: str
    service: Mapping[str, Any] | None
    told: tuple[str, ...] = ()
    secrets: Mapping[str, Any] = field(default_factory=dict)
    weights: Stored | None = None

    @property
    def home(self) -> str | None:
        """The Hugging Face home on the host that its weights can be used from where they lie."""
        if self.weights is None or self.weights.cache.kind != "folder":
            return None
        folder, _, last = self.weights.cache.on_host.rpartition("/")
        return folder if last == "hub" else None


def pieces_of(servers: Iterable[Observed], catalog: Catalog) -> list[Piece]:
    """Each server's, under names that differ."""
    made: list[Piece] = []
    for server in servers:
        piece = piece_of(server, catalog)
        taken = {one.name for one in made}
        number = 2
        name = piece.name
        while name in taken:
            name = f"{piece.name}-{number}"
            number += 1
        made.append(replace(piece, name=name))
    return made


def piece_of(server: Observed, catalog: Catalog) -> Piece:
    """The service that would serve the same."""
    try:
        return _piece(server, catalog)
    except RefusedError as refused:
        return Piece(server, service_name(server.named), None, (str(refused),))


def _piece(server: Observed, catalog: Catalog) -> Piece:
    known = started_by(list(server.words))
    if known is None:
        raise RefusedError(f"{server.words[0]}: none of ours (vllm serve, sglang, llama-server)")
    program = known[0]
    engine = catalog.engines[_ENGINES[program]]
    told: list[str] = []
    _must_be_alone(server.words)
    at = listening(server, program)
    words = with_hub_names(replace(server, words=(known[0], *known[1])), program)[1:]
    words = without(words, "host", "port", "download-dir")
    image, entrypoint, about = image_of(server, _ENGINES[program], catalog)
    told += [*at.told, *about]
    words = _without_secrets(words, told)
    recipe = SourceRecipe("server", server.named, "", left=())
    made = converted_server(
        recipe,
        Server(program, tuple(words), _environment(server, told)),
        ChosenImage(_ENGINES[program], image),
        name=service_name(server.named), source=f"as it ran in {server.named}", catalog=catalog, alone=True,
    )  # fmt: skip
    service = dict(made.service or {})
    told += [one for one in made.left if not one.startswith(("api-key:", "hf-token:"))]
    model, found = _model(service["model"], catalog, words, server)
    if found is None:
        told.append(f"weights: {model['repository']} was not found where it looks for models, so it would be fetched")
    name = service_name(str(model["served_as"]).rpartition("/")[2])
    service["model"] = model
    secrets = secrets_of(server, name, engine, service, told)
    if drafted := service.get("speculative"):
        draft, lies = _model(drafted["model"], catalog, words, server)
        service["speculative"] = {**drafted, "model": draft}
        if lies is None:
            told.append(f"weights: the draft model {draft['repository']} was not found, so it would be fetched")
    _place(service, at, engine, told)
    if container := container_of(server, entrypoint, engine, told):
        service["container"] = container
    service["memory_plan"] = "warn"
    return Piece(server, name, _ordered(service), tuple(told), secrets, found)


_MASKED_TODO = "without need of it, nothing is to be done; else write it beside by hand"


def _without_secrets(words: list[str], told: list[str]) -> list[str]:
    """Without flags whose values were masked; of the API key another part tells."""
    at = [place for place, word in enumerate(words) if MASK in word]
    flags = {words[place if words[place].startswith("-") else max(0, place - 1)].partition("=")[0] for place in at}
    secret = sorted(flag.lstrip("-").replace("_", "-") for flag in flags if flag.startswith("-"))
    secret = [flag for flag in secret if flag != "api-key"]
    told += [f"{flag}: it looks like a secret, and did not leave the host: {_MASKED_TODO}" for flag in secret]
    return without(words, *secret) if secret else words


def _must_be_alone(words: Iterable[str]) -> None:
    given = list(words)
    named = [
        (_SHORT.get(word, word.lstrip("-").replace("_", "-").partition("=")[0]), at) for at, word in enumerate(given)
    ]
    for name, at in named:
        if name in _SIZES and given[at].startswith("-"):
            value = given[at].partition("=")[2] or "".join(given[at + 1 : at + 2])
            if value not in {"", "1"}:
                raise RefusedError(
                    f"--{name} {value}: it is spread over several hosts or GPUs; write such a service by hand"
                )


def _environment(server: Observed, told: list[str]) -> dict[str, str]:
    left_out, kept = {*KEYS, *TOKENS}, {}
    for name, value in server.environment.items():
        if name in left_out or _IDLE.fullmatch(name) or name.startswith("LLAMA_ARG_"):
            continue
        if MASK in value:
            told.append(f"env.{name}: it looks like a secret, and did not leave the host: {_MASKED_TODO}")
            continue
        mount = None if server.docker is None else mount_of(value, server.docker["Mounts"])
        if name.startswith("TIKTOKEN_"):
            told.append(
                f"env.{name}: ours has vocabularies in a folder of its own, where the catalog's model needs them"
            )
        elif mount is not None and not any(f"{cache.path}/".startswith(f"{value}/") for cache in server.caches):
            told.append(f"env.{name}: {value} lies in {mount['Source']} of the host, which ours has not")
        else:
            kept[name] = value
    return kept


def _model(
    named: str | Mapping[str, Any], catalog: Catalog, words: Iterable[str], server: Observed
) -> tuple[dict[str, Any], Stored | None]:
    if isinstance(named, str):
        entry = catalog.models[named].model_dump(mode="json", exclude_defaults=True)
        entry = {key: value for key, value in entry.items() if key not in {"flags", "verified", "kv_bytes_per_token"}}
    else:
        entry = dict(named)
    given = value_of(words, "revision")
    found = stored(entry["repository"], given, server.caches)
    return (entry, None) if found is None else (as_stored(entry, found), found)


def _place(service: dict[str, Any], at: Listening, engine: Engine, told: list[str]) -> None:
    service["port"] = at.port
    service["listen"] = at.listen
    is_open = at.listen not in {"127.0.0.1", "::1"}
    if is_open and engine.api_key_variable is None:
        service["listen"] = "127.0.0.1"
        told.append(
            f"listen: it is open to others at {at.listen}, and this engine takes no key that can be kept secret: "
            "loopback; others reach it by the gateway"
        )
    elif is_open and "api_key" not in service:
        told.append(
            f"listen: it is open to others at {at.listen} without a key. Here the host makes one, which clients then "
            "need; 127.0.0.1 keeps it to the host"
        )


_KEYS_IN_ORDER = ("engine", "model", "profile", "image", "port", "listen", "api_key", "memory_plan")


def _ordered(service: Mapping[str, Any]) -> dict[str, Any]:
    first = {key: service[key] for key in _KEYS_IN_ORDER if key in service}
    return {**first, **{key: value for key, value in service.items() if key not in first}}
