"""The image that a server's container was made from, as a fleet file writes it. Pure."""

from __future__ import annotations

import re
from typing import Any

from modules.adopt.observed import Observed
from modules.catalog import Catalog

_SERVES = re.compile(r"vllm|sglang|llama-server|api_server")


def image_of(server: Observed, engine: str, catalog: Catalog) -> tuple[dict[str, Any], str | None, list[str]]:
    """What goes under the service's `image`, the entrypoint that it needs or None, and what is to be told.

    An image that a registry has stands there by that registry's digest, for other hosts to have it, too; any other by
    the id that this host's docker has for it. In both ways nothing is pulled here.
    """
    if server.docker is None:
        ours = f"image: it runs in no container, so it gets the catalog's {catalog.engines[engine].recipe}"
        return {}, None, [f"{ours}, which is made or pulled before it is stopped"]
    if server.image is None:
        return {}, None, ["image: docker has its image no more, so it is the catalog's"]
    name = str(server.docker["Config"]["Image"])
    recipe: dict[str, Any] = {"source": f"the image {name} of {server.named}"}
    digest = next((one for one in server.image["RepoDigests"] if "/" in one), None)
    told: list[str] = []
    if digest is not None:
        repository, _, digest = digest.partition("@")
        tag = next((one for one in server.image["RepoTags"] if one.rpartition(":")[0] == repository), "")
        recipe = {"reference": _whole(tag or f"{repository}:latest"), "digest": digest, **recipe}
        if not tag:
            told.append(f"image: its tag has moved on since; it stays at {digest}")
    else:
        tag = next(iter(server.image["RepoTags"]), name)
        recipe = {"reference": tag, "digest": server.image["Id"], "present": True, **recipe}
        told.append(f"image: {tag} is in no registry, so another host can not have it by this file (image.recipe)")
    return {"recipe": recipe}, _entrypoint(server), told


def _entrypoint(server: Observed) -> str | None:
    """None: the image's own is left as it is, since the container had it, and it only wraps what is run."""
    assert server.docker is not None
    assert server.image is not None
    own, used = server.image["Entrypoint"] or [], server.docker["Config"]["Entrypoint"] or []
    if own == used and not _SERVES.search(" ".join(own)):
        return None
    return "python3" if server.words[1:2] == ("-m",) and server.words[0].endswith("python3") else server.program


def _whole(reference: str) -> str:
    host = reference.partition("/")[0]
    return reference if "." in host or ":" in host or host == "localhost" else f"docker.io/{reference}"
