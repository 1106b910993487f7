"""How a host's dockerd is set up and stands."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.files import FileState, FileStates
from modules.facts.site import CERTIFICATE

CONFIG = "/etc/docker/daemon.json"
# Where `nvidia-ctk cdi generate` is told to write by NVIDIA's guide; what lies in /var/run/cdi its own service renews.
DEVICES = "/etc/cdi/nvidia.yaml"
REGISTRY_CERTIFICATES = "/etc/docker/certs.d"
REGISTRY_CERTIFICATE = "tinderbox-site.crt"


@dataclass(frozen=True)
class DaemonState:
    """`config`: text of daemon.json, None where there is none. `masked`: switched off by whoever administers the host.

    `trusts_site`: whether dockerd started after the site's certificates last changed; it reads them at its start.
    `version`: of the program; `running`: of the daemon, which a package may leave as it was; None where there is none.
    `stale_devices`: files that the host's device specification (CDI) names, and that are not there any more: it is of a
    former driver.
    """

    installed: bool
    enabled: bool
    active: bool
    trusts_site: bool
    config: str | None
    files: dict[str, FileState | None]
    masked: bool = False
    stale_devices: tuple[str, ...] = ()
    version: str | None = None
    running: str | None = None

    @property
    def registry_certificates(self) -> list[str]:
        """Paths of the certificates that we placed for registries."""
        return [path for path, state in self.files.items() if path.endswith(REGISTRY_CERTIFICATE) and state is not None]


class DockerDaemon(HostFact[DaemonState]):
    """All that decides what is to be done about dockerd, in one round trip.

    + paths: absolute paths of the files to look at
    """

    @override
    def command(self, paths: Sequence[str] = ()) -> StringCommand:
        certificate = QuoteString(CERTIFICATE)
        return StringCommand(
            "echo begin; if command -v dockerd >/dev/null; then echo Installed=yes;",
            "dockerd --version | sed -n 's/^Docker version \\([^,]*\\),.*/Version=\\1/p';",
            "docker version --format 'Running={{.Server.Version}}' 2>/dev/null; fi;",
            "systemctl show docker.service --timestamp=unix -p ActiveState,UnitFileState,ActiveEnterTimestamp;",
            *("! test -e", certificate, '|| echo "Certificate=$(stat -c %Y', certificate, ')";'),
            *("! test -e", CONFIG, f'|| echo "Config=$(base64 -w0 {CONFIG})";'),
            *("! test -e", DEVICES, f"|| sed -nE 's/^[ -]*(hostPath|path): *//p' {DEVICES} | sort -u |"),
            'while read -r each; do test -e "$each" || echo "Stale=$each"; done;',
            "echo files;",
            FileStates().command(paths, f"{REGISTRY_CERTIFICATES}/*/{REGISTRY_CERTIFICATE}"),
        )

    @override
    def parse(self, lines: list[str]) -> DaemonState:
        divide = lines.index("files")
        stale = tuple(line.removeprefix("Stale=") for line in lines[1:divide] if line.startswith("Stale="))
        shown = {key: value for key, _, value in (line.partition("=") for line in lines[1:divide])}
        started, changed = shown.get("ActiveEnterTimestamp", "").removeprefix("@"), shown.get("Certificate", "0")
        config = shown.get("Config")
        return DaemonState(
            installed=shown.get("Installed") == "yes",
            enabled=shown.get("UnitFileState", "") not in {"", "disabled", "masked"},
            active=shown.get("ActiveState") == "active",
            trusts_site=not started or int(changed) <= int(started),
            config=None if config is None else base64.b64decode(config).decode(),
            files=FileStates().parse(lines[divide + 1 :]),
            masked=shown.get("UnitFileState") == "masked",
            stale_devices=stale,
            version=shown.get("Version") or None,
            running=shown.get("Running") or None,
        )
