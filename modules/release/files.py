"""A release → the files of it that lie on the host."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from modules.release import layout
from modules.spec.release import Release


@dataclass(frozen=True)
class HostFile:
    """A file of root's. `secret`: mode 0600, and its content stays out of ledger and logs."""

    path: str
    content: str
    secret: bool = False

    @property
    def sha256(self) -> str:
        """What the host's copy must hash to."""
        return hashlib.sha256(self.content.encode()).hexdigest()


def environment_text(variables: Mapping[str, str]) -> str:
    """A docker `--env-file`: one `NAME=value` a line, nothing quoted, so a value can not hold a line break."""
    for name, value in variables.items():
        if "\n" in value or "\r" in value:
            raise ValueError(f"environment variable {name} holds a line break, which docker's --env-file can not carry")
    return "".join(f"{name}={value}\n" for name, value in sorted(variables.items()))


def release_files(release: Release, secrets: Mapping[str, str], host: str = "") -> tuple[HostFile, ...]:
    """Unit, environment and labels; the watch's unit and the secrets where there are any.

    `host`: whose files, of a release that spans hosts.
    """
    service, part = release.service, release.on(host)
    files = [
        HostFile(layout.unit_file(service), part.unit),
        HostFile(layout.environment_file(service), environment_text(part.environment)),
        HostFile(layout.label_file(service), f"tinderbox.service={service}\ntinderbox.release={release.id}\n"),
    ]
    if part.watch:
        files.append(HostFile(layout.watch_unit_file(service), part.watch))
    if secrets:
        files.append(HostFile(layout.secret_file(service), environment_text(secrets), secret=True))
    return tuple(files)
