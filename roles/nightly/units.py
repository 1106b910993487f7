"""The texts of the nightly check's units. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modules.operations.managed_files import ManagedFile
from modules.release.unit import word

_UNITS = "/etc/systemd/system"
# It may measure every service of the fleet one after the other.
_LONGEST = "6h"


@dataclass(frozen=True)
class Nightly:
    """`user`: who runs it: whoever may log in to the hosts without a password or an agent. `root`: the checkout.

    `fleet`: its name; `file`: the fleet file; `at`: systemd's calendar time; `writable`: folders that it may write to.
    `metrics`: folder of node exporter's textfile collector, None: none. `gate`: whether services are measured.
    `deploy`: whose drift is looked for, None: deploys/spark.py.
    """

    fleet: str
    file: str
    user: str
    root: str
    python: str
    at: str
    writable: Sequence[str]
    metrics: str | None = None
    gate: bool = True
    deploy: str | None = None

    @property
    def name(self) -> str:
        """Of both units, without their endings."""
        return f"tinderbox-nightly-{self.fleet}"

    @property
    def files(self) -> list[ManagedFile]:
        """Service and timer."""
        return [
            ManagedFile(f"{_UNITS}/{self.name}.service", service_text(self)),
            ManagedFile(f"{_UNITS}/{self.name}.timer", timer_text(self)),
        ]


def service_text(wish: Nightly) -> str:
    """The service. No secret stands in it: secrets are where the fleet file says, read by the run itself."""
    words = [wish.python, "-m", "modules.nightly"]
    words += [] if wish.gate else ["--no-gate"]
    words += ["--deploy", wish.deploy] if wish.deploy is not None else []
    words += ["--metrics", wish.metrics] if wish.metrics is not None else []
    return (
        f"# By Tinderbox (make nightly). Undo: make nightly-off FLEET={wish.file}\n"
        f"[Unit]\nDescription=Tinderbox: drift and gate of fleet {wish.fleet}\n"
        "Wants=network-online.target\nAfter=network-online.target\n\n"
        f"[Service]\nType=oneshot\nUser={wish.user}\nWorkingDirectory={_whole(wish.root)}\n"
        f"Environment={_quoted(f'TINDERBOX_FLEET={wish.file}')} PYTHONUNBUFFERED=1\n"
        f"ExecStart={' '.join(map(word, words))}\n"
        f"TimeoutStartSec={_LONGEST}\nKillMode=mixed\nKillSignal=SIGINT\nTimeoutStopSec=15\n"
        "NoNewPrivileges=yes\nProtectSystem=strict\nProtectHome=read-only\nPrivateTmp=yes\nPrivateDevices=yes\n"
        "ProtectKernelTunables=yes\nProtectKernelModules=yes\nProtectKernelLogs=yes\nProtectControlGroups=yes\n"
        "ProtectClock=yes\nProtectHostname=yes\nRestrictSUIDSGID=yes\nRestrictRealtime=yes\nRestrictNamespaces=yes\n"
        "LockPersonality=yes\nRestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\nSystemCallArchitectures=native\n"
        "CapabilityBoundingSet=\nUMask=0022\n"
        f"ReadWritePaths={' '.join(_quoted(f'-{path}') for path in wish.writable)}\n"
    )


def timer_text(wish: Nightly) -> str:
    """The timer: every night, after one that the machine slept through, too, and not all controllers at once."""
    return (
        f"# By Tinderbox (make nightly). Undo: make nightly-off FLEET={wish.file}\n"
        f"[Unit]\nDescription=Tinderbox: drift and gate of fleet {wish.fleet}, every night\n\n"
        f"[Timer]\nOnCalendar={wish.at}\nPersistent=true\nRandomizedDelaySec=30min\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )


def _whole(path: str) -> str:
    # systemd takes the rest of the line as it stands, without quotes, and % for its own.
    return path.replace("%", "%%")


def _quoted(text: str) -> str:
    """One word of a list that is no command: `$` means nothing in it."""
    return word(text).replace("$$", "$")
