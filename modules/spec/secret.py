"""Secrets are named in a fleet file, never written in it."""

from __future__ import annotations

from pydantic import Field, model_validator

from modules.spec.base import Strict, VariableName, broken_rule


class SecretReference(Strict):
    """Where a secret is found on the controller: exactly one of an environment variable, a file, a command.

    `env`: name of a variable. `file`: path, relative to the fleet file. `command`: program and arguments; its standard
    output, stripped, is the secret.
    """

    env: VariableName | None = None
    file: str | None = None
    command: tuple[str, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _exactly_one(self) -> SecretReference:
        given = [name for name in ("env", "file", "command") if getattr(self, name) is not None]
        if len(given) != 1:
            raise broken_rule(f"give exactly one of env, file, command (got {', '.join(given) or 'none'})")
        return self
