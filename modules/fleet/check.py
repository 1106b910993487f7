"""Check what one host's settings say together, with the catalog at hand."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from modules.catalog import Catalog
from modules.fleet.compose import chosen_recipe, model_of, recipe_faults
from modules.fleet.flag_check import flag_faults, number_faults
from modules.fleet.gate_check import gate_rules
from modules.fleet.monitoring_check import monitoring_rules
from modules.fleet.problem import Key, Problem
from modules.fleet.suggest import advice
from modules.fleet.tree import Tree, find
from modules.spec.base import is_loopback
from modules.spec.engine import Engine, KnownFlags
from modules.spec.image import Recipe
from modules.spec.settings import OWN_PROFILE, HostSettings, ModelChoice, Service

Finding = tuple[Key, str, str]
"""Key below the settings, what is wrong, what to do."""


def settings_problems(settings: HostSettings, address: str, catalog: Catalog, tree: Tree) -> list[Problem]:
    """Tell what the models can not know. `tree`: the settings', for their places. Unknown names are told elsewhere."""
    return [Problem(find(tree, key).origin, what, todo) for key, what, todo in _rules(settings, address, catalog)]


def _rules(settings: HostSettings, address: str, catalog: Catalog) -> Iterator[Finding]:
    if settings.hardware.simulated and not is_loopback(address):
        yield (
            ("hardware", "simulated"),
            f"only a host on loopback can be simulated, not {address}",
            "take it out of this host's layers",
        )
    yield from _peer_rules(settings)
    yield from monitoring_rules(settings)
    if settings.network.bundle is not None and settings.network.bundle == settings.bundle.export_to:
        yield (
            ("bundle", "export_to"),
            "the host takes what it needs from this very directory (network.bundle)",
            "export to another one, or take network.bundle out",
        )
    for name, service in settings.services.items():
        for key, what, todo in _service_rules(service, catalog):
            yield ("services", name, *key), what, todo


def _peer_rules(settings: HostSettings) -> Iterator[Finding]:
    peer_address = settings.network.peer_address
    if peer_address is not None:
        address = ipaddress.ip_address(peer_address)
        if address.is_loopback or address.is_unspecified:
            what = f"{peer_address} is no address at which other hosts reach this one"
            yield ("network", "peer_address"), what, "write the host's own address on the network between the hosts"
    for name, service in settings.services.items():
        if service.port == settings.image.port:
            what = f"service {name} and the passing on of images both want port {service.port}"
            yield ("services", name, "port"), what, "change it, or image.port"
        if service.port == settings.weights.spread.port and settings.weights.spread.enabled:
            what = f"service {name} and the passing on of weights both want port {service.port}"
            yield ("services", name, "port"), what, "change it, or weights.spread.port"


def _service_rules(service: Service, catalog: Catalog) -> Iterator[Finding]:
    engine = catalog.engines.get(service.engine)
    if engine is None:
        return
    yield from _engine_rules(service, engine, catalog.flags.get(service.engine))
    yield from _model_rules(service.model, ("model",), service, engine, catalog)
    yield from _spark_rules(service, catalog)
    yield from _gpu_rules(service, engine)
    yield from _draft_rules(service, engine, catalog)
    yield from _alias_rules(service, engine, catalog)
    gate = catalog.gates.get(service.gate) if isinstance(service.gate, str) else service.gate
    if gate is not None:
        yield from gate_rules(service, gate, engine, model_of(service, catalog))
    recipe = chosen_recipe(engine, service.image, catalog.images)
    if recipe is not None:
        yield from _image_rules(service, recipe)


def _engine_rules(service: Service, engine: Engine, known: KnownFlags | None) -> Iterator[Finding]:
    profiles = {*engine.profiles, OWN_PROFILE}
    if service.profile not in profiles:
        what = f"engine {service.engine} has no profile {service.profile!r}"
        yield ("profile",), what, advice(service.profile, profiles, "profiles")
    if service.api_key is not None and engine.api_key_variable is None:
        what = f"engine {service.engine} takes no API key that can be kept secret"
        yield ("api_key",), what, "take it out, and listen on loopback"
    elif service.is_open and engine.api_key_variable is None:
        what = f"listens on {service.listen}, where others can reach it, and engine {service.engine} takes no API key"
        yield ("listen",), f"{what} that can be kept secret", "take listen out (loopback), or use another engine"
    fixed = {part.removeprefix("--") for part in engine.command if part.startswith("--")}
    for flag in service.flags:
        if flag in fixed:
            yield ("flags", flag), "this flag is set by the service's own keys", "use engine, model, port, listen"
    for flag, what, todo in flag_faults(engine, service.flags, known):
        yield ("flags", flag), what, todo


def _spark_rules(service: Service, catalog: Catalog) -> Iterator[Finding]:
    model = model_of(service, catalog)
    hosts = 1 if service.cluster is None else len(service.cluster.hosts)
    if model is None or hosts >= model.sparks or service.memory_plan == "warn":
        return
    size = "" if model.size_gib is None else f" ({model.size_gib:g} GiB of weights)"
    what = f"{model.repository} needs {model.sparks} Sparks{size}, and this service is spread over {hosts}"
    yield ("model",), what, f"name {model.sparks} hosts under cluster, or take a smaller model"


def _gpu_rules(service: Service, engine: Engine) -> Iterator[Finding]:
    """A Spark has one GPU. What a cluster's sizes come to is looked at with its hosts."""
    if engine.multi_node is None or not engine.container.gpus:
        return
    sizes = engine.multi_node.sizes if service.cluster is None else ()
    for flag in (*sizes, "data-parallel-size"):
        size = service.flags.get(flag)
        if not isinstance(size, bool) and str(size).isdecimal() and int(str(size)) > 1:
            todo = f"take it out, or name {size} hosts under cluster" if flag in sizes else "take it out"
            yield ("flags", flag), f"{size} is for more GPUs than there are: a Spark has one", todo


def _alias_rules(service: Service, engine: Engine, catalog: Catalog) -> Iterator[Finding]:
    if service.aliases and not engine.several_names:
        what = f"engine {service.engine} serves a model by one name alone"
        yield ("aliases",), what, "take it out, or use an engine that takes several, as vllm"
    model = model_of(service, catalog)
    if model is not None and model.served_as in service.aliases:
        at = service.aliases.index(model.served_as)
        yield ("aliases", at), f"{model.served_as} is the model's own name already", "take it out"


def _draft_rules(service: Service, engine: Engine, catalog: Catalog) -> Iterator[Finding]:
    wish = service.speculative
    if wish is None:
        return
    if wish.method not in engine.speculative:
        what = f"engine {service.engine} takes no draft model by method {wish.method}"
        known = ", ".join(sorted(engine.speculative))
        yield ("speculative",), what, f"use method {known}" if known else "take it out, or use another engine"
    yield from _model_rules(wish.model, ("speculative", "model"), service, engine, catalog)


def _model_rules(
    chosen: ModelChoice, key: tuple[str, ...], service: Service, engine: Engine, catalog: Catalog
) -> Iterator[Finding]:
    model = catalog.models.get(chosen) if isinstance(chosen, str) else chosen
    if model is None:
        return
    if not isinstance(chosen, str):
        for name, flags in model.flags.items():
            for flag, what, todo in number_faults(flags, catalog.flags.get(name)):
                yield (*key, "flags", name, flag), what, todo
    # Known only after an hour of building and fetching, else.
    serves_gguf = engine.command[:1] == ("llama-server",)
    if serves_gguf and model.file is None:
        what = f"engine {service.engine} serves one GGUF file, and this model names none"
        yield key, what, "take one whose entry has `file`, as gpt-oss-120b-gguf, or add `file`"
    if not serves_gguf and model.file is not None:
        what = f"engine {service.engine} serves safetensors, and this model is the GGUF file {model.file}"
        yield key, what, "take one whose entry has no `file`, as gpt-oss-120b, or engine llama-cpp"


def _image_rules(service: Service, recipe: Recipe) -> Iterator[Finding]:
    for pin in service.image.pins:
        if pin not in recipe.pins:
            yield ("image", "pins", pin), f"recipe {recipe.name} has no pin {pin!r}", advice(pin, recipe.pins, "pins")
    triple = service.image.triple
    if triple is not None and triple not in recipe.triples:
        what = f"recipe {recipe.name} has no triple {triple!r}"
        yield ("image", "triple"), what, advice(triple, recipe.triples, "triples")
    for key, what in recipe_faults(recipe, service.image):
        # What a triple brought stands nowhere else in the file.
        ours = key[:2] if key[:1] == ("pins",) and key[1] not in service.image.pins and triple is not None else ()
        yield ("image", *(("triple",) if ours else key)), what, "use another one, or take it out for the recipe's own"
