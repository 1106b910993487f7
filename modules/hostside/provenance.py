"""Where an image comes from, told twice: in a file inside of it, and as labels that any registry or tool can read.

Labels of the OCI image specification where there is one, else with `tinderbox.` before them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

RECIPE_LABEL = "tinderbox.recipe"
_OCI = "org.opencontainers.image."


def told_of(given: Mapping[str, Any], recipe: str, base_digests: list[str], now: float) -> dict[str, Any]:
    """The file: what the controller knows (`given`), completed by what only the build knows.

    `recipe`: its hash. `base_digests`: `RepoDigests` of the base image; one that was never in a registry has none.
    `now`: seconds since the epoch, written in UTC.
    """
    return {
        **given,
        "digest": recipe,
        "base_digest": next((digest.split("@", 1)[1] for digest in base_digests if "@" in digest), None),
        "built_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
    }


def labels(told: Mapping[str, Any]) -> dict[str, str]:
    """The labels; what is not known is left out."""
    found = {
        RECIPE_LABEL: told["digest"],
        "tinderbox.architecture": told.get("architecture"),
        f"{_OCI}created": told["built_at"],
        f"{_OCI}title": told.get("recipe"),
        f"{_OCI}version": told.get("version"),
        f"{_OCI}revision": told.get("revision"),
        f"{_OCI}source": told.get("origin"),
        f"{_OCI}base.name": told.get("base"),
        f"{_OCI}base.digest": told.get("base_digest"),
    }
    found |= {f"tinderbox.commit.{name}": of["commit"] for name, of in sorted(told.get("sources", {}).items())}
    return {name: str(value) for name, value in found.items() if value is not None}
