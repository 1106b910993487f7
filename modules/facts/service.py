"""What a service on a host is: its files, its unit, its container, and what it needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyinfra.api import QuoteString, StringCommand

from modules.facts.base import HostFact
from modules.facts.program import AskProgram
from modules.hostside.version_changes import Versions, changes, outdated
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "service_state.py")


@dataclass(frozen=True)
class UnitState:
    """systemd's view of a unit. `job`: whether systemd has yet to carry out a start or stop of it."""

    active: str
    sub: str
    enabled: bool
    stale: bool
    job: bool

    @classmethod
    def of(cls, shown: dict[str, str]) -> UnitState:
        """From the properties that `systemctl show` prints."""
        return cls(
            active=shown.get("ActiveState", "unknown"),
            sub=shown.get("SubState", "unknown"),
            enabled=shown.get("UnitFileState") == "enabled",
            stale=shown.get("NeedDaemonReload") == "yes",
            job=shown.get("Job", "0") not in {"", "0"},
        )


@dataclass(frozen=True)
class Barred:
    """Why a release is not tried again: the event that made it bad, when, and what was noted with it."""

    event: str
    at: str
    note: str = ""

    def text(self) -> str:
        """For people."""
        return f"{self.event} at {self.at}{f': {self.note}' if self.note else ''}"


@dataclass(frozen=True)
class Underway:
    """An activation that has not come to its end. `instead`: of which release an operator wants to be rid by it.

    `ungated`: no gate follows.
    """

    release: str
    back: str | None = None
    instead: str | None = None
    ungated: bool = False


@dataclass(frozen=True)
class ServiceState:
    """`files`: path → sha256, None where absent. `current`, `last_good`: release ids.

    `container_release`: of what runs now. `commit`: what the model's revision stands for in the host's cache.
    `attested`: whether the ledger has with the current release what was seen in its image.
    `docker_answers`: False where nothing can be said of image and container. `last_good` is None also where the
    ledger's entry can not be read, since such a release can not be put back. `standings`: release → new, trying,
    ready, good or bad; `barred`: those that are not tried again unless that is forced. `pending`: what is under way.
    `made_key`: fingerprint of the API key that the host has made. `draft_commit`, `draft_is_here`: of the draft model.
    `versions`: of the machine's parts now, and of the wanted image; `proved_on`, `started_on`: what they were when the
    release in force was last found good, and when what serves was started; None where that was not kept. `reboot`: why
    the host must be restarted before a container can have its GPU. `closed`: gateways are told to send it nothing.
    """

    systemd: int
    unit: UnitState
    files: dict[str, str | None]
    current: str | None
    last_good: str | None
    image: str | None
    container_release: str | None
    commit: str | None
    model_is_here: bool
    missing_encodings: tuple[str, ...]
    docker_answers: bool = True
    attested: bool = True
    standings: Mapping[str, str] = field(default_factory=dict)
    barred: Mapping[str, Barred] = field(default_factory=dict)
    pending: Underway | None = None
    made_key: str | None = None
    draft_commit: str | None = None
    draft_is_here: bool = False
    versions: Versions = field(default_factory=dict)
    proved_on: Versions | None = None
    started_on: Versions | None = None
    reboot: str | None = None
    closed: bool = False

    @property
    def upgraded(self) -> dict[str, str]:
        """What has changed on the machine since the release in force was last found good."""
        return changes(self.proved_on or {}, self.versions)

    @property
    def outdated(self) -> dict[str, str]:
        """What of that the server that runs has yet to take up: where its start was not noted, since its proof."""
        return outdated(self.started_on or self.proved_on or {}, self.versions)

    @classmethod
    def of(cls, answer: dict[str, Any]) -> ServiceState:
        """From what `service_state.py` prints."""
        container = answer["container"] or {}
        releases: dict[str, dict[str, Any]] = answer.get("releases") or {}
        barred = {release: one["barred"] for release, one in releases.items() if one["barred"]}
        pending = answer.get("pending")
        return cls(
            systemd=int(answer["systemd"]),
            unit=UnitState.of(answer["unit"]),
            files=dict(answer["files"]),
            current=answer["current"],
            last_good=answer["last_good"] if answer["good_is_restorable"] else None,
            image=answer["image"],
            container_release=container.get("release") if container.get("running") else None,
            commit=answer["commit"],
            model_is_here=bool(answer["model_is_here"]),
            missing_encodings=tuple(answer["missing_encodings"]),
            # Before an update the host has the former program.
            docker_answers=bool(answer.get("docker_answers", True)),
            attested=bool(answer.get("attested", True)),
            standings={release: one["standing"] for release, one in releases.items()},
            barred={name: Barred(one["event"], one["at"], one.get("note") or "") for name, one in barred.items()},
            pending=Underway(**{name: pending[name] for name in Underway.__dataclass_fields__}) if pending else None,
            made_key=answer.get("made_key"),
            draft_commit=answer.get("draft_commit"),
            draft_is_here=bool(answer.get("draft_is_here")),
            versions=answer.get("versions") or {},
            proved_on=answer.get("proved_on"),
            started_on=answer.get("started_on"),
            reboot=answer.get("reboot"),
            closed=bool(answer.get("closed")),
        )


class ServiceRelease(HostFact[ServiceState]):
    """All that decides what is to be done about a service, in one round trip; None before Tinderbox is on the host."""

    def command(  # noqa: D102
        self,
        *,
        service: str,
        image: str,
        repository: str,
        revision: str,
        model_file: str | None,
        files: list[str],
        encodings: list[str],
        key_variable: str | None = None,
        draft: tuple[str, str, str | None] | None = None,
    ) -> StringCommand:
        words = [service, "--image", image, "--repository", repository, "--revision", revision]
        words += ["--model-file", model_file] if model_file is not None else []
        words += [f"--file={path}" for path in files]
        words += [f"--encoding={path}" for path in encodings]
        words += ["--key-variable", key_variable] if key_variable is not None else []
        if draft is not None:
            words += ["--draft", draft[0], "--draft-revision", draft[1]]
            words += ["--draft-file", draft[2]] if draft[2] is not None else []
        # Silent where the program is not installed yet: a run without -y asks before the stages that install it.
        return AskProgram(layout.PYTHON, PROGRAM, words)

    def parse(self, lines: list[str]) -> ServiceState:  # noqa: D102
        return ServiceState.of(json.loads(lines[-1]))


class FailureLog(HostFact["list[str]"]):
    """What a failed start of a release has logged, oldest line first."""

    def command(self, service: str, release: str) -> StringCommand:  # noqa: D102
        path = QuoteString(layout.failure_log(service, release))
        return StringCommand("! test -e", path, "|| cat", path)

    def parse(self, lines: list[str]) -> list[str]:  # noqa: D102
        return lines
