"""What every model of the spec has in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class Strict(BaseModel):
    """A model that is frozen and refuses keys that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


# Docker refuses one-letter container names, systemd dislikes most punctuation: one form that both take.
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", min_length=2, max_length=48)]
# pyinfra and OpenSSH accept more, but a host name is also shown, logged and used as a file name.
HostName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$", min_length=2, max_length=253)
]
Port = Annotated[int, Field(ge=1024, le=65535)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/\S*$")]
