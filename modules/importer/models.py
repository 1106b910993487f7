"""The model that a recipe names, as a fleet file writes it."""

from __future__ import annotations

import re
from typing import Any

from modules.catalog import Catalog
from modules.importer.recipe import RefusedError

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+")
# What a catalogued entry of the same repository tells of it.
_KNOWN = ("revision", "size_gib", "encodings", "task", "sparks", "context", "load_seconds", "file", "include")


def model_entry(
    written: str,
    catalog: Catalog,
    *,
    source: str,
    served_as: str,
    revision: str | None = None,
    file: str | None = None,
    task: str = "generate",
    pooled: bool = False,
    what: str = "model",
) -> str | dict[str, Any]:
    """A name of the catalog where that says the very same, else the model written out.

    Raises `RefusedError`: it is on its author's disk, or the file that is meant is not named.
    """
    repository, colon, quantisation = written.partition(":")
    if not repository:
        raise RefusedError(f"it names no {what}")
    if not _REPOSITORY.fullmatch(repository) or repository.startswith("models/"):
        raise RefusedError(f"its {what} {written} lies on its author's disk, not on a hub")
    if (colon or repository.lower().endswith("-gguf")) and file is None:
        named = f"quantisation {quantisation}" if colon else "repository"
        raise RefusedError(f"its {what} is a {named} and not a file: say which of its GGUF files under model.file")
    if pooled and task == "generate":
        task = "rerank" if "rerank" in repository.lower() else "embed"
    known = next(
        ((name, one) for name, one in catalog.models.items() if one.repository == repository and one.file == file), None
    )
    entry: dict[str, Any] = {"repository": repository}
    if known is not None:
        name, model = known
        if (model.served_as, revision, model.task) == (served_as, None, task):
            return name
        told = model.model_dump(mode="json", include=set(_KNOWN), exclude_defaults=True)
        entry |= {key: told[key] for key in _KNOWN if key in told}
    if revision is not None:
        entry["revision"] = revision
    if file is not None:
        entry |= {"file": file, "include": [file]}
    if task != "generate":
        entry["task"] = task
    return entry | {"served_as": served_as, "source": source}
