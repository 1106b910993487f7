"""Say what pydantic found in words that tell what to do."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from modules.fleet.belongs import place_of
from modules.fleet.problem import Key
from modules.fleet.suggest import advice
from modules.spec import base, engine, fabric, monitoring, strategy

Words = tuple[str, str]
"""What is wrong, and what to do."""

_FORMS: tuple[tuple[Any, str], ...] = (
    (base.Name, "two or more lower-case letters, digits and single dashes, beginning with a letter, as in gpt-oss"),
    (base.HostName, "letters, digits, dots and dashes, as in spark-1.example.net"),
    (base.Address, "a host name or an IP address without a port"),
    (base.ModelName, "letters, digits and . _ : / @ + -, beginning with a letter or a digit, as in gpt-oss-120b"),
    (base.UserName, "a user's name: letters, digits and . _ - @ + \\, beginning with a letter, a digit or _"),
    (base.VariableName, "the name of an environment variable: letters, digits and underscores"),
    (base.Url, "an address that begins with http:// or https://"),
    (base.Sha256, "64 hex digits in lower case"),
    (base.Commit, "40 hex digits in lower case"),
    (base.Digest, "sha256: and 64 hex digits in lower case"),
    (base.KeyFingerprint, "a fingerprint as `ssh-keygen -lf` prints it, as in SHA256:…"),
    (base.AbsolutePath, "an absolute path without spaces"),
    (base.PackageVersion, "a package's version, or its beginning with a star, as in 13.0.*"),
    (strategy.Share, "a number of hosts, as 4, or a share of them, as 25%"),
    (strategy.Duration, "a number with s, m or h, as in 10m, or 0"),
    (engine.FlagName, "a flag's name without its leading dashes, in lower case"),
    (engine.CapabilityName, "a capability's name in capitals, as in SYS_NICE"),
    (fabric.CableEnd, "a member and its port, as in spark-1/f0; a Spark has f0 and f1"),
    (monitoring.Retention, "a whole number with h, d, w or y, as in 30d"),
    (monitoring.PinnedImage, "an image with its digest, as in docker.io/grafana/grafana:12.0.0@sha256:…"),
)
_FORM_OF_PATTERN: dict[str, str] = {
    r"^[0-9A-F]{40}$": "40 hex digits in upper case",
    r"^\d+(\.\d+)*\.?$": "a driver's version or its beginning, as in 580 or 580.95",
    r"^\d+[kmg]$": "a number with k, m or g, as in 100m",
    r"^cuda-toolkit-\d+-\d+$": "the name of a toolkit's package, as in cuda-toolkit-13-0",
    r"^[A-Za-z0-9.-]+(:\d+)?$": "host or host:port, without https:// and without a path",
    r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$": "owner/name, as the hub has it",
    r"^[^\r\n]*$": "one line",
    **{typing.get_args(kind)[1].pattern: form for kind, form in _FORMS},
}


def _bound(sign: str) -> Callable[[Mapping[str, Any]], Words]:
    def words(context: Mapping[str, Any]) -> Words:
        limit = next(iter(context.values()))
        return f"out of range: must be {sign} {limit}", "correct the number"

    return words


def _wrong_form(context: Mapping[str, Any]) -> Words:
    form = _FORM_OF_PATTERN.get(context["pattern"])
    return "has not the right form", f"write {form}" if form else f"it must match {context['pattern']}"


_WORDS: dict[str, Callable[[Mapping[str, Any]], Words]] = {
    "greater_than": _bound("more than"),
    "greater_than_equal": _bound("at least"),
    "less_than": _bound("less than"),
    "less_than_equal": _bound("at most"),
    "string_pattern_mismatch": _wrong_form,
    "string_too_short": lambda c: ("too short", f"write at least {c['min_length']} characters"),
    "string_too_long": lambda c: ("too long", f"write at most {c['max_length']} characters"),
    "too_short": lambda c: ("empty", f"give at least {c['min_length']}"),
    "literal_error": lambda c: ("not one of the choices", f"write one of {c['expected']}"),
    "missing": lambda _: ("missing", "add this key"),
}
_KINDS: dict[str, Words] = {
    "string": ("not text", "write a text, in quotes if need be"),
    "int": ("not a whole number", "write a whole number, without a unit"),
    "float": ("not a number", "write a number, without a unit"),
    "bool": ("neither true nor false", "write true or false"),
    "dict": ("not a mapping", "write `key: value` lines below it"),
    "model": ("not a mapping", "write `key: value` lines below it"),
    "tuple": ("not a list", "write [a, b] or `- a` lines below it"),
    "list": ("not a list", "write [a, b] or `- a` lines below it"),
}


def worded(error: ErrorDetails, model: type[BaseModel]) -> Words:
    """Put an error of `model` into words. Never repeats the offending value: it may be a secret."""
    kind = error["type"]
    context: Mapping[str, Any] = error.get("ctx", {})
    if kind == "extra_forbidden":
        key = error["loc"]
        place = place_of(str(key[-1]), model)
        if place is not None:
            return "this key has no place here", f"it belongs {place}"
        return "unknown key", advice(str(key[-1]), known_keys(model, key[:-1]), "keys")
    if kind in {"value_error", "rule"}:
        text = str(context["message"] if kind == "rule" else context["error"])
        what, _, todo = text.partition(": ")
        return (what, todo) if todo else (text, "correct it")
    if kind in _WORDS:
        return _WORDS[kind](context)
    family = _KINDS.get(kind.partition("_")[0])
    return family if family is not None else (error["msg"][:1].lower() + error["msg"][1:], "correct it")


def known_keys(model: type[BaseModel], key: Key) -> set[str]:
    """Name the keys that the mapping at this path of keys may have."""
    kinds: list[Any] = [model]
    for part in key:
        kinds = [inner for kind in kinds for inner in _below(kind, part)]
    return {name for kind in kinds if _is_model(kind) for name in kind.model_fields}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _below(kind: Any, part: str | int) -> list[Any]:
    if _is_model(kind):
        field = kind.model_fields.get(part)
        return [] if field is None else _choices(field.annotation)
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) in {dict, tuple, list} and arguments:
        return _choices(arguments[1] if typing.get_origin(kind) is dict else arguments[0])
    return []


def _choices(annotation: Any) -> list[Any]:
    if typing.get_origin(annotation) is typing.Annotated:
        return _choices(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in {types.UnionType, typing.Union}:
        return [choice for argument in typing.get_args(annotation) for choice in _choices(argument)]
    return [annotation]
