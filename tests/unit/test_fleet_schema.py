"""The schema that editors get: current, and of one mind with the loader."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.fleet.schema import PATH, schema_text
from modules.fleet.source import read_tree

INVENTORY = Path(__file__).resolve().parents[2] / "inventory"
SCHEMA: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))


def faults(value: Any, schema: dict[str, Any], where: str = "") -> Iterator[str]:
    """Tell where a value does not fit, by the keywords that our schema uses (and no others)."""
    unknown = schema.keys() - KEYWORDS
    assert not unknown, unknown
    if "$ref" in schema:
        yield from faults(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], where)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            fitting = [choice for choice in schema[keyword] if not list(faults(value, choice, where))]
            if not fitting:
                yield f"{where}: fits none of {keyword}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is not one of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']}"
    if "type" in schema and not of_type(value, schema["type"]):
        yield f"{where}: {value!r} is no {schema['type']}"
    elif isinstance(value, dict):
        yield from mapping_faults(value, schema, where)
    elif isinstance(value, list):
        yield from list_faults(value, schema, where)
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    elif isinstance(value, int | float):
        yield from number_faults(value, schema, where)


KEYWORDS = {
    *("$ref", "$schema", "$defs", "anyOf", "oneOf", "enum", "const", "type", "pattern", "description", "default"),
    *("properties", "patternProperties", "additionalProperties", "propertyNames", "required", "minProperties"),
    *("items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum"),
}


def of_type(value: Any, names: str | list[str]) -> bool:
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    for name in [names] if isinstance(names, str) else names:
        if name in {"integer", "number"}:
            if isinstance(value, int if name == "integer" else int | float) and not isinstance(value, bool):
                return True
        elif isinstance(value, types[name]):
            return True
    return False


def mapping_faults(value: dict[str, Any], schema: dict[str, Any], where: str) -> Iterator[str]:
    for key in schema.get("required", []):
        if key not in value:
            yield f"{where}: {key} is missing"
    if len(value) < schema.get("minProperties", 0):
        yield f"{where}: too few"
    for key, child in value.items():
        inner = [schema["properties"][key]] if key in schema.get("properties", {}) else []
        inner += [each for form, each in schema.get("patternProperties", {}).items() if re.search(form, key)]
        rest = schema.get("additionalProperties", True)
        if not inner and rest is False:
            yield f"{where}: unknown key {key}"
        if not inner and isinstance(rest, dict):
            inner = [rest]
        for each in inner:
            yield from faults(child, each, f"{where}.{key}")


def list_faults(value: list[Any], schema: dict[str, Any], where: str) -> Iterator[str]:
    if len(value) < schema.get("minItems", 0):
        yield f"{where}: too few"
    for index, child in enumerate(value):
        if "items" in schema:
            yield from faults(child, schema["items"], f"{where}[{index}]")


def number_faults(value: float, schema: dict[str, Any], where: str) -> Iterator[str]:
    low, high, above = schema.get("minimum"), schema.get("maximum"), schema.get("exclusiveMinimum")
    if (
        (low is not None and value < low)
        or (high is not None and value > high)
        or (above is not None and value <= above)
    ):
        yield f"{where}: {value} is out of range"


def test_committed_schema_is_current() -> None:
    assert PATH.read_text(encoding="utf-8") == schema_text(), "run `make schema` and commit what it writes"


@pytest.mark.parametrize("name", ["lab", "example", "example-fleet"])
def test_shipped_fleet_files_fit_the_schema(name: str) -> None:
    path = INVENTORY / f"{name}.yaml"

    assert list(faults(read_tree(path).plain(), SCHEMA)) == []
    assert path.read_text(encoding="utf-8").startswith("# yaml-language-server: $schema=fleet.schema.json\n")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"hots": {}}, "unknown key hots"),
        ({"hosts": {}}, "too few"),
        ({"hosts": {"spark 1": {}}}, "unknown key spark 1"),
        ({"hosts": {"spark-1": {"adress": "x"}}}, "fits none"),
        ({"defaults": {"weights": {"workers": "many"}}}, "fits none"),
        ({"defaults": {"weights": {"wokers": 1}}}, "fits none"),
        ({"groups": {"big": {"services": {"x1": {"engine": "none"}}}}}, "fits none"),
        ({"secrets": {"key": "sk-1"}}, "is no object"),
        ({"ssh": {"port": 70000}}, "out of range"),
    ],
)
def test_wrong_files_do_not_fit_the_schema(change: dict[str, Any], fault: str) -> None:
    file = {"fleet": "office", "hosts": {"spark-1": None}} | change

    assert any(fault in text for text in faults(file, SCHEMA)), list(faults(file, SCHEMA))


def test_layers_may_hold_a_part_of_a_service_and_take_keys_away() -> None:
    file = {
        "fleet": "office",
        "defaults": {"services": {"gpt-oss": {"engine": "vllm"}}, "hardware": {"driver": 580}},
        "groups": {"big": {"services": {"gpt-oss": {"model": "gpt-oss-120b", "gate": None}}}, "none": None},
        "hosts": {"spark-1": {"settings": {"services": {"gpt-oss": None}}}, "spark-2": None},
    }

    assert list(faults(file, SCHEMA)) == []
