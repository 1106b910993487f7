"""Read the catalog's YAML files."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from modules.catalog.catalog import Catalog

_FOLDER = Path(__file__).parent
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class CatalogError(Exception):
    """The catalog's own data is wrong: a defect of the project, not of a fleet file."""


@functools.cache
def load_catalog() -> Catalog:
    """Read and check the catalog, once a process.

    Raises `CatalogError`: naming every file and key that is wrong.
    """
    sections = {name: _section(name) for name in Catalog.model_fields}
    try:
        return Catalog.model_validate(sections)
    except ValidationError as error:
        raise CatalogError("\n".join(_line(detail) for detail in error.errors(include_url=False))) from None


def _section(name: str) -> Any:
    path = _FOLDER / f"{name}.yaml"
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506, a safe loader, in C where there
    except yaml.YAMLError as error:
        raise CatalogError(f"{path.name}: no valid YAML: {error}") from None


def _line(detail: ErrorDetails) -> str:
    inner: list[str] = detail.get("ctx", {}).get("key", [])
    section, *key = [str(part) for part in detail["loc"]] + inner
    return f"modules/catalog/{section}.yaml: {'.'.join(key)}: {detail['msg']}"
