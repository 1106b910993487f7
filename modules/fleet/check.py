"""Check one host's settings against the catalog and against each other."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping

from modules.catalog import Catalog
from modules.fleet.compose import recipe_faults
from modules.fleet.problem import Key, Problem
from modules.fleet.suggest import advice, nearest
from modules.fleet.tree import Tree, find
from modules.spec.engine import Engine
from modules.spec.model import Model
from modules.spec.settings import HostSettings, Service


def settings_problems(
    settings: HostSettings, address: str, secrets: Iterable[str], catalog: Catalog, tree: Tree
) -> list[Problem]:
    """Tell what the models can not know. `tree`: the settings'. `secrets`: the names that the fleet file declares."""
    rules = _rules(settings, address, secrets, catalog)
    return [Problem(find(tree, key).origin, what, todo) for key, what, todo in rules]


Finding = tuple[Key, str, str]


def _rules(settings: HostSettings, address: str, secrets: Iterable[str], catalog: Catalog) -> Iterator[Finding]:
    if settings.hardware.simulated and not is_loopback(address):
        yield (
            ("hardware", "simulated"),
            f"only a host on loopback can be simulated, not {address}",
            "take it out of this host's layers",
        )
    declared = tuple(secrets)
    for name, service in settings.services.items():
        for key, what, todo in _service_rules(service, declared, catalog):
            yield ("services", name, *key), what, todo


def _service_rules(service: Service, secrets: tuple[str, ...], catalog: Catalog) -> Iterator[Finding]:
    yield from _named("model", service.model, catalog.models, "models")
    yield from _named("gate", service.gate, catalog.gates, "gates")
    yield from _listen_rules(service)
    yield from _secret_rules(service, secrets, catalog)
    engine = catalog.engines.get(service.engine)
    if engine is None:
        yield ("engine",), f"unknown engine {service.engine!r}", advice(service.engine, catalog.engines, "engines")
        return
    yield from _engine_rules(service, engine)
    yield from _image_rules(service, engine, catalog)


def _named(key: str, name: object, known: Mapping[str, object], kind: str) -> Iterator[Finding]:
    if isinstance(name, str) and name not in known:
        yield (key,), f"unknown {key} {name!r}", advice(name, known, kind)


def _listen_rules(service: Service) -> Iterator[Finding]:
    if not is_loopback(service.listen) and service.api_key is None:
        yield (
            ("listen",),
            f"listens on {service.listen}, where others can reach it, without an API key",
            "add api_key: with the name of a secret, or take listen out (loopback)",
        )


def _secret_rules(service: Service, secrets: tuple[str, ...], catalog: Catalog) -> Iterator[Finding]:
    if service.api_key is not None and service.api_key not in secrets:
        yield ("api_key",), *_no_secret(service.api_key, secrets)
    model = service.model if isinstance(service.model, Model) else catalog.models.get(service.model)
    if model is not None and model.token is not None and model.token not in secrets:
        key = ("model", "token") if isinstance(service.model, Model) else ("model",)
        yield key, *_no_secret(model.token, secrets)


def _no_secret(written: str, secrets: tuple[str, ...]) -> tuple[str, str]:
    # What is written may be the secret itself, so it is not repeated.
    what = "this is no name of a secret of this fleet"
    meant = nearest(written, secrets)
    if meant is not None:
        return what, f"did you mean {meant}?"
    names = f" (declared: {', '.join(sorted(secrets))})" if secrets else ""
    return what, f"declare it under secrets: and write its name here, never its value{names}"


def _engine_rules(service: Service, engine: Engine) -> Iterator[Finding]:
    if service.profile not in engine.profiles:
        yield (
            ("profile",),
            f"engine {service.engine} has no profile {service.profile!r}",
            advice(service.profile, engine.profiles, "profiles"),
        )
    if service.api_key is not None and engine.api_key_variable is None:
        what = f"engine {service.engine} takes no API key that can be kept secret"
        yield ("api_key",), what, "take it out, and listen on loopback"
    fixed = {part.removeprefix("--") for part in engine.command if part.startswith("--")}
    for flag in service.flags:
        if flag in fixed:
            yield ("flags", flag), "this flag is set by the service's own keys", "use engine, model, port, listen"


def _image_rules(service: Service, engine: Engine, catalog: Catalog) -> Iterator[Finding]:
    name = service.image.recipe or engine.recipe
    recipe = catalog.images.get(name)
    if recipe is None:
        yield ("image", "recipe"), f"unknown image recipe {name!r}", advice(name, catalog.images, "recipes")
        return
    for pin in service.image.pins:
        if pin not in recipe.pins:
            yield ("image", "pins", pin), f"recipe {name} has no pin {pin!r}", advice(pin, recipe.pins, "pins")
    for key, what in recipe_faults(recipe, service.image):
        yield ("image", *key), what, "use another one, or take it out for the recipe's own"


def is_loopback(address: str) -> bool:
    """Tell whether an address is this machine's own and nobody else's."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
