"""What each host of a run has told of its services: what it is to serve, what it serves, whether that needs a turn.

pyinfra is a child process, so what operations learn comes to `modules.converge` by a file of JSON lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

# Names the file to which a survey is added.
SURVEY_FILE = "TINDERBOX_SURVEY"


@dataclass(frozen=True)
class Surveyed:
    """One service of one host, or with an empty `service` the host itself.

    `wanted`: the release that it is to serve; `wish`: that release as it is called on every host, whatever keys the
    hosts made themselves. `current`: the one in force. `turn`: why its server is stopped or measured by a run, empty
    where a run leaves it as it is. `barred`: why the wanted release is not tried again. `proved_s`: for how long the
    wanted release has served since it was found good; None where it does not so.
    """

    host: str
    service: str
    wanted: str = ""
    wish: str = ""
    current: str | None = None
    turn: str = ""
    barred: str = ""
    proved_s: float | None = None


@dataclass(frozen=True)
class HostSurvey:
    """A host with all that it told."""

    name: str
    parts: tuple[Surveyed, ...] = ()

    @property
    def kind(self) -> frozenset[tuple[str, str]]:
        """What it is to serve. Hosts of one kind are to serve the very same."""
        return frozenset((one.service, one.wish) for one in self.parts if one.wish)

    @property
    def turn(self) -> str:
        """Why it needs a turn; empty where it needs none, or would be refused."""
        reasons = [f"{one.service}: {one.turn}" if one.service else one.turn for one in self.parts if one.turn]
        return "; ".join(reasons) if not self.barred else ""

    @property
    def barred(self) -> str:
        """What it is to serve and does not try again, and why."""
        return "; ".join(f"{one.service}: release {one.wanted}: {one.barred}" for one in self.parts if one.barred)

    @property
    def proved_s(self) -> float | None:
        """For how long all that it is to serve has served and been good; None where it is not so."""
        times = [one.proved_s for one in self.parts if one.service]
        known = [time for time in times if time is not None]
        return min(known) if known and len(known) == len(times) and not self.turn and not self.barred else None


_here: dict[tuple[str, str], Surveyed] = {}


def surveyed_here() -> list[HostSurvey]:
    """What hosts have told in this process."""
    return hosts_of(_here.values())


def note(found: Surveyed) -> None:
    """Keep what a host has told: in this process, and in the file where one is named."""
    _here[found.host, found.service] = found
    path = os.environ.get(SURVEY_FILE)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(found)) + "\n")


def read_survey(path: Path) -> list[HostSurvey]:
    """What was written to `path`; of what was told twice the last. A line that was cut off is left out."""
    found: dict[tuple[str, str], Surveyed] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            one = Surveyed(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[one.host, one.service] = one
    return hosts_of(found.values())


def hosts_of(parts: Iterable[Surveyed]) -> list[HostSurvey]:
    """By host, in the order in which they first told something."""
    by_host: dict[str, list[Surveyed]] = {}
    for one in parts:
        by_host.setdefault(one.host, []).append(one)
    return [HostSurvey(name, tuple(found)) for name, found in by_host.items()]
