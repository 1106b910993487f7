"""Whether a text is JSON of a form: the part of JSON Schema that a question can ask for."""

from __future__ import annotations

import json
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def complaint(text: str, schema: dict[str, Any]) -> str | None:
    """What is wrong with it, or None."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"it is no JSON ({error})"
    return _wrong(value, schema, "it")


def _wrong(value: Any, schema: dict[str, Any], where: str) -> str | None:
    kind = schema.get("type")
    if kind is not None and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return f"{where} is no {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        return f"{where} is not {schema['const']!r}"
    if isinstance(value, dict):
        return _wrong_object(value, schema, where)
    if isinstance(value, list):
        return next((why for one in value if (why := _wrong(one, schema.get("items") or {}, f"{where}[]"))), None)
    return None


def _wrong_object(value: dict[str, Any], schema: dict[str, Any], where: str) -> str | None:
    known = schema.get("properties") or {}
    missing = [key for key in schema.get("required") or () if key not in value]
    if missing:
        return f"{where} lacks {missing[0]}"
    if schema.get("additionalProperties") is False and value.keys() - known.keys():
        return f"{where} holds {sorted(value.keys() - known.keys())[0]}, which nobody asked for"
    return next((why for key, one in value.items() if (why := _wrong(one, known.get(key) or {}, key))), None)
