"""Which secrets a run needs: those of the fleet's hosts, where its deploy has a stage that hands them to hosts."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from modules.catalog import Catalog
from modules.fleet.compose import draft_of
from modules.spec.fleet import ResolvedHost

# Roles that know the value of a secret. Every other deploy runs without anybody's passphrase.
WITH_SECRETS = frozenset({"engine", "gate", "gateway", "monitoring", "rollout", "weights"})


def used_secrets(hosts: Sequence[ResolvedHost], catalog: Catalog) -> tuple[str, ...]:
    """The names of all secrets that these hosts use."""
    used: set[str | None] = set()
    for host in hosts:
        grafana = host.settings.monitoring.grafana
        used.add(None if grafana is None else grafana.admin_password)
        for service in host.settings.services.values():
            model = catalog.models[service.model] if isinstance(service.model, str) else service.model
            draft = draft_of(service, catalog)
            used |= {service.api_key, model.token, None if draft is None else draft.token}
        if host.settings.gateway is not None:
            used |= {client.key for client in host.settings.gateway.clients.values()}
    return tuple(sorted(name for name in used if name is not None))


def needs_secrets(words: Sequence[str]) -> bool:
    """Whether what pyinfra is asked to run needs them. `words`: of its command line, deploy files among them."""
    deploys = [Path(word) for word in words if word.endswith(".py") and Path(word).name != "inventory.py"]
    return any(set(_roles(deploy)) & WITH_SECRETS for deploy in deploys)


def _roles(deploy: Path) -> list[str]:
    """The roles that a deploy file imports, as `weights` or `weights.clean`; none of one that can not be read."""
    try:
        tree = ast.parse(deploy.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return []
    found = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    found += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    found += [
        f"roles.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "roles"
        for name in node.names
    ]
    return [name.removeprefix("roles.") for name in found if name.startswith("roles.")]
