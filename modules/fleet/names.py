"""Check the names by which a layer refers to the catalog and to the fleet's secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from modules.catalog import Catalog
from modules.fleet.problem import Key, Problem
from modules.fleet.suggest import advice, nearest
from modules.fleet.tree import Tree, find


def name_problems(layer: Tree, catalog: Catalog, secrets: Sequence[str]) -> Iterator[Problem]:
    """Tell which names in a layer of settings mean nothing, whether a host uses the layer or not."""
    known: tuple[tuple[Key, str, str, Mapping[str, object]], ...] = (
        (("engine",), "engine", "engines", catalog.engines),
        (("model",), "model", "models", catalog.models),
        (("speculative", "model"), "model", "models", catalog.models),
        (("gate",), "gate", "gates", catalog.gates),
        (("gate", "answers"), "answers", "answers", catalog.answers),
        (("image", "recipe"), "image recipe", "recipes", catalog.images),
    )
    services = layer.child("services")
    for service in (services.keys or {}).values() if services is not None else ():
        for key, kind, kinds, entries in known:
            place = find(service, key)
            name = place.tree.text
            if not place.rest and name is not None and name not in entries:
                yield Problem(place.origin, f"unknown {kind} {name!r}", advice(name, entries, kinds))
        yield from _model_names(service, catalog)
        for key in (("api_key",), ("model", "token"), ("speculative", "model", "token")):
            place = find(service, key)
            if not place.rest and place.tree.scalar is not None and place.tree.scalar not in secrets:
                yield _no_secret(place.tree, secrets)
    yield from _client_secrets(layer, secrets)


def _model_names(service: Tree, catalog: Catalog) -> Iterator[Problem]:
    """What a model that is written out refers to."""
    for key in (("model",), ("speculative", "model")):
        encodings, flags = find(service, (*key, "encodings")), find(service, (*key, "flags"))
        for item in () if encodings.rest else encodings.tree.items or ():
            name = item.text
            if name is not None and name not in catalog.encodings:
                yield Problem(item.origin, f"unknown encoding {name!r}", advice(name, catalog.encodings, "encodings"))
        for engine, tree in (flags.tree.keys or {}).items() if not flags.rest else ():
            if engine not in catalog.engines:
                yield Problem(tree.origin, f"unknown engine {engine!r}", advice(engine, catalog.engines, "engines"))


def _client_secrets(layer: Tree, secrets: Sequence[str]) -> Iterator[Problem]:
    clients = find(layer, ("gateway", "clients"))
    for client in () if clients.rest else (clients.tree.keys or {}).values():
        key = client.child("key")
        if key is not None and key.scalar is not None and key.scalar not in secrets:
            yield _no_secret(key, secrets)

    password = find(layer, ("monitoring", "grafana", "admin_password"))
    if not password.rest and password.tree.scalar is not None and password.tree.scalar not in secrets:
        yield _no_secret(password.tree, secrets)


def _no_secret(value: Tree, secrets: Sequence[str]) -> Problem:
    # What is written may be the secret itself, so it is not repeated.
    what = "this is no name of a secret of this fleet"
    meant = nearest(str(value.scalar), secrets)
    if meant is not None:
        return Problem(value.origin, what, f"did you mean {meant}?")
    names = f" (declared: {', '.join(sorted(secrets))})" if secrets else ""
    return Problem(value.origin, what, f"declare it under secrets: and write its name here, never its value{names}")
