"""JSON schema of fleet files, for editors: `python -m modules.fleet.schema` writes inventory/fleet.schema.json."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from modules.catalog import Catalog, load_catalog
from modules.fleet.descriptions import DOCS, descriptions
from modules.spec.fleet import FleetFile
from modules.spec.settings import OWN_PROFILE, HostSettings, Service

Schema = dict[str, Any]

# Sections whose model is not called as they are.
_MODELS = {"build": "BuildLimits"}
PATH = Path(__file__).resolve().parents[2] / "inventory" / "fleet.schema.json"


def fleet_schema(catalog: Catalog) -> Schema:
    """Give the schema. Settings are partial in every layer: no key is required, and null takes one away."""
    fleet = FleetFile.model_json_schema()
    settings = HostSettings.model_json_schema()
    definitions: Schema = {name: _partial(schema) for name, schema in settings.pop("$defs").items()}
    definitions["HostSettings"] = _partial(settings)
    definitions["Service"]["properties"] |= _names(definitions["Service"]["properties"], catalog)
    definitions["Speculative"]["properties"]["model"] |= _name_or(sorted(catalog.models), "Model")
    definitions["ImageOverride"]["properties"]["recipe"] |= _name_or(sorted(catalog.images), "Recipe")
    layer = {"$ref": "#/$defs/HostSettings"}
    host = fleet["$defs"]["Host"]["properties"]
    fleet["properties"]["defaults"] = layer
    fleet["properties"]["groups"] = _keyed(fleet["properties"]["groups"], layer)
    fleet["properties"]["hosts"] = _keyed(fleet["properties"]["hosts"], {"$ref": "#/$defs/Host"})
    host["settings"], host["ssh"] = layer, {"$ref": "#/$defs/Ssh"}
    fleet["$defs"] |= definitions
    placed = fleet["$defs"]["PlacedService"]["properties"]
    fleet["$defs"]["PlacedService"]["properties"] = {**definitions["Service"]["properties"], **_own(placed)}
    _describe(fleet)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_plain(fleet)}


def _describe(fleet: Schema) -> None:
    """Add what the docs say of each key."""
    outer, settings, service = (
        words for heading, words in descriptions(DOCS.read_text(encoding="utf-8")).items() if words
    )
    definitions = fleet["$defs"]
    for key, words in outer.items():
        section, _, inner = key.rpartition(".")
        properties = definitions["PlacedService"]["properties"] if section else fleet["properties"]
        properties[inner]["description"] = words
    for key, words in service.items():
        definitions["Service"]["properties"][key]["description"] = words
    for path, words in settings.items():
        # `weights.spread.port` is `port` of the model `Spread`.
        section, _, key = path.rpartition(".")
        name = section.rpartition(".")[2]
        model = _MODELS.get(name, name.capitalize()) if section else "HostSettings"
        definitions[model]["properties"][key]["description"] = words


def _own(properties: Schema) -> Schema:
    """Of a service that stands in no layer, the keys that no other has."""
    return {name: properties[name] for name in properties if name not in Service.model_fields}


def _keyed(schema: Schema, value: Schema) -> Schema:
    """Give a mapping whose keys keep their form and whose values are of another schema, or null for an empty one."""
    keys = {pattern: _or_null(value) for pattern in schema["patternProperties"]}
    return {**schema, "patternProperties": keys, "additionalProperties": False}


def _partial(schema: Schema) -> Schema:
    """Let every key be left out, be taken away by null, and be written as a number where text is wanted."""
    kept = {key: value for key, value in schema.items() if key not in {"required", "minProperties"}}
    partial: Schema = _lenient(kept)
    if "properties" in partial:
        partial["properties"] = {name: _or_null(property_) for name, property_ in partial["properties"].items()}
    return partial


def _lenient(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_lenient(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    lenient = {key: _lenient(value) for key, value in schema.items()}
    if lenient.get("type") == "string" and _looks_like_a_number(lenient):
        lenient["type"] = ["string", "number"]
    if "patternProperties" in lenient:
        # Also the entries of a mapping can be taken away: a service, a flag.
        lenient["patternProperties"] = {key: _or_null(value) for key, value in lenient["patternProperties"].items()}
        lenient["additionalProperties"] = False
    return lenient


def _looks_like_a_number(schema: Schema) -> bool:
    """Whether YAML may read what is wanted here as a number, as in `driver: 580`."""
    return not {"enum", "const"} & schema.keys() and re.search(schema.get("pattern", ""), "580") is not None


def _or_null(schema: Schema) -> Schema:
    if schema.get("type") == "null" or {"type": "null"} in schema.get("anyOf", []):
        return schema
    kept: Schema = {key: schema[key] for key in ("title", "description", "default") if key in schema}
    return {**kept, "anyOf": [{key: value for key, value in schema.items() if key not in kept}, {"type": "null"}]}


def _names(properties: Schema, catalog: Catalog) -> Schema:
    """Offer the catalog's names where a service refers to it."""
    profiles = sorted({OWN_PROFILE, *(name for engine in catalog.engines.values() for name in engine.profiles)})
    return {
        "engine": properties["engine"] | {"anyOf": [{"enum": sorted(catalog.engines)}, {"type": "null"}]},
        "profile": properties["profile"] | {"anyOf": [{"enum": profiles}, {"type": "null"}]},
        "model": properties["model"] | _name_or(sorted(catalog.models), "Model"),
        "gate": properties["gate"] | _name_or(sorted(catalog.gates), "Gate"),
    }


def _name_or(names: list[str], definition: str) -> Schema:
    # A model may also be one of the file's own.
    own = [{"type": "string"}] if definition == "Model" else []
    return {"anyOf": [{"enum": names}, *own, {"$ref": f"#/$defs/{definition}"}, {"type": "null"}]}


def _plain(schema: Any) -> Any:
    """Leave out the titles that only repeat a key, and callable discriminators that no editor knows."""
    if isinstance(schema, dict):
        return {
            key: _plain(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str)) and key != "discriminator"
        }
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema


def schema_text() -> str:
    """Give the schema as the text of its file."""
    return json.dumps(fleet_schema(load_catalog()), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(schema_text(), encoding="utf-8")
