"""Draft models and variables of an imported service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from modules.catalog import Catalog
from modules.fleet.inline_secret import looks_secret
from modules.importer.models import model_entry
from modules.spec.engine import FlagValue

# Where our container has it: weights at weights.home, read-only and offline.
_PLACES = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "HF_HUB_OFFLINE", "LLAMA_CACHE")
_DRAFT = "{draft}"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def draft_of(flags: dict[str, FlagValue], source: str, catalog: Catalog, left: list[str]) -> dict[str, Any] | None:
    """A draft model that the flags name is fetched like any model, and stands in them by its place on the host."""
    for flag in ("speculative-config.model", "speculative-draft-model-path", "speculative-draft-model"):
        if flag in flags:
            written, flags[flag] = str(flags[flag]), _DRAFT
            return _drafted(written, source, catalog)
    config = flags.get("speculative-config")
    if not isinstance(config, str):
        return None
    try:
        found = json.loads(config)
    except ValueError:
        left.append("speculative-config: no JSON, so no draft model is fetched for it")
        return None
    draft = found.get("model") if isinstance(found, dict) else None
    if not isinstance(draft, str):
        return None
    flags["speculative-config"] = config.replace(f'"{draft}"', f'"{_DRAFT}"')
    return _drafted(draft, source, catalog)


def _drafted(written: str, source: str, catalog: Catalog) -> dict[str, Any]:
    model = model_entry(written, catalog, source=source, served_as=written, what="draft model")
    # How it drafts is said by the recipe's own flags; the catalog's for this method are none of profile own.
    return {"model": model, "method": "eagle3"}


def variables_of(environment: Mapping[str, Any], left: list[str]) -> Iterator[tuple[str, str]]:
    """Those that an engine can be given; `left` is told of the others."""
    for name, value in environment.items():
        text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        if not _NAME.fullmatch(str(name)):
            left.append(f"env.{name}: no name of a variable")
        elif looks_secret(str(name), text):
            left.append(f"env.{name}: a secret has no place in a file: name one under secrets")
        elif name in _PLACES:
            left.append(f"env.{name}: where weights lie is weights.home here")
        elif "$" in text or "\n" in text:
            left.append(f"env.{name}: {text[:40]!r} is for a shell to work out")
        else:
            yield str(name), text
