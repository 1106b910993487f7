"""A release: everything that decides how a service serves. Its id is a hash of exactly that."""

from __future__ import annotations

import hashlib

from modules.spec.base import Strict


class Member(Strict):
    """What a release is on one host of its cluster."""

    host: str
    address: str
    command: tuple[str, ...]
    environment: dict[str, str]
    unit: str
    watch: str = ""


class Release(Strict):
    """Everything that decides how a service serves.

    `image`: content-addressed tag or digest. `commit`: the model's. `unit`: text of the systemd unit. `environment`:
    without secrets; `secrets`: names only, with a fingerprint of each value (first 12 hex digits of its sha256).
    `draft`, `draft_commit`: the draft model, where there is one.
    `watch`: text of the unit that watches whether it still generates; empty where nobody does.
    `members`: of a service that spans hosts, each of them, the head first, whose command, environment and units are
    those above, too. So the release has one id on all of them.
    """

    service: str
    engine: str
    profile: str
    image: str
    model: str
    commit: str
    draft: str | None = None
    draft_commit: str | None = None
    encodings: dict[str, str] = {}
    command: tuple[str, ...]
    environment: dict[str, str]
    secrets: dict[str, str] = {}
    unit: str
    watch: str = ""
    members: tuple[Member, ...] | None = None

    @property
    def id(self) -> str:
        """Twelve hex digits of the sha256 of the release's canonical JSON."""
        return hashlib.sha256(self.model_dump_json(exclude_none=True).encode()).hexdigest()[:12]

    def on(self, host: str) -> Release | Member:
        """What it is on a host: the release itself, where it spans none."""
        return next((member for member in self.members or () if member.host == host), self)
