"""The services of a host's ledger and their releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "release_list.py")
_HISTORY = str(layout.PROGRAMS / "history_state.py")


@dataclass(frozen=True)
class ReleaseSeen:
    """`standing`: new, trying, ready, good or bad. `good`: it ever was. `put_back`: in force in place of another one.

    `since`: when it was last put in force (UTC). `failure`: why it is bad.
    """

    standing: str
    good: bool
    put_back: bool
    since: str | None
    failure: str | None


@dataclass(frozen=True)
class ServiceReleases:
    """`active`: systemd's word. `pending`: the release that is being put in force or awaits its gate.

    `invocation`: systemd's id of the start that serves. `proved_s`: for how long the release in force has served since
    it was found good, by the host's clock; None where it does not so. `closed`: gateways send it no requests.
    """

    active: str
    enabled: bool
    current: str | None
    last_good: str | None
    pending: str | None
    releases: Mapping[str, ReleaseSeen]
    invocation: str | None = None
    proved_s: float | None = None
    closed: bool = False

    @classmethod
    def of(cls, answer: dict[str, Any]) -> ServiceReleases:
        """From what `release_list.py` prints."""
        return cls(**{**answer, "releases": {name: ReleaseSeen(**one) for name, one in answer["releases"].items()}})


class HostReleases(HostFact["dict[str, ServiceReleases]"]):
    """Every service that the host has a ledger of; None before this version of Tinderbox's programs is on it."""

    def command(self) -> StringCommand:  # noqa: D102
        return StringCommand("! test -e", PROGRAM, "||", layout.PYTHON, PROGRAM)

    def parse(self, lines: list[str]) -> dict[str, ServiceReleases]:  # noqa: D102
        return {name: ServiceReleases.of(one) for name, one in json.loads(lines[-1]).items()}


@dataclass(frozen=True)
class ServiceHistory:
    """`releases`: the oldest first, each with `id`, `events`, `content`, `standing`, `failure`, `proved_on`.

    `measurements`: as the gate stored them, without samples, the oldest first.
    """

    active: str
    current: str | None
    last_good: str | None
    releases: tuple[dict[str, Any], ...]
    measurements: tuple[dict[str, Any], ...]


class ReleaseHistory(HostFact["dict[str, ServiceHistory]"]):
    """What the host knows of the releases of services; None before this version of our programs is on it."""

    def command(self, services: list[str]) -> StringCommand:  # noqa: D102
        names = [QuoteString(name) for name in services]
        return StringCommand("! test -e", _HISTORY, "||", layout.PYTHON, _HISTORY, *names)

    def parse(self, lines: list[str]) -> dict[str, ServiceHistory]:  # noqa: D102
        return {name: ServiceHistory(**one) for name, one in json.loads(lines[-1]).items()}
