"""What takes a change of the fabric's ports back that nobody confirms: a timer, and a unit after a restart of the host.

A timer that systemd keeps only in its memory is forgotten by a restart, and the change would stay. The unit is on the
disk for as long as a change waits to be confirmed, and runs before anything configures the network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import write_text
    from modules.hostside.fabric_host import Host
else:
    from atomic import write_text
    from fabric_host import Host

HOME = "/var/lib/tinderbox/fabric"
TIMER = "tinderbox-fabric-rollback"
UNIT = "tinderbox-fabric-unconfirmed.service"
_UNITS = "/etc/systemd/system"
_WANTS = f"{_UNITS}/multi-user.target.wants"


def unit_text(program: Path) -> str:
    """The unit that takes an unconfirmed change back at boot."""
    return f"""[Unit]
Description=Take back a change of the fabric's ports that nobody confirmed (Tinderbox)
DefaultDependencies=no
ConditionPathExists={HOME}/pending.json
RequiresMountsFor={HOME} /etc/netplan {program.parent}
After=local-fs.target systemd-remount-fs.service
Wants=network-pre.target
Before=network-pre.target systemd-networkd.service NetworkManager.service
Conflicts=shutdown.target
Before=shutdown.target

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 {program} boot
TimeoutStartSec=60

[Install]
WantedBy=multi-user.target
"""


def arm(host: Host, program: Path, seconds: int) -> None:
    """From now on the change is taken back: after so many seconds, or at the next boot if that comes first."""
    wants = host.path(_WANTS)
    wants.mkdir(parents=True, exist_ok=True)
    write_text(host.path(f"{_UNITS}/{UNIT}"), unit_text(program))
    link = wants / UNIT
    link.unlink(missing_ok=True)
    # By hand: `systemctl enable` would have systemd read all units anew, for a unit that is needed at boot only.
    link.symlink_to(f"{_UNITS}/{UNIT}")
    words = [f"--unit={TIMER}", f"--on-active={seconds}", "--timer-property=AccuracySec=1s", "--collect", "--quiet"]
    host.must("systemd-run", *words, "/usr/bin/python3", str(program), "rollback")


def stop_timer(host: Host) -> None:
    """No timer takes it back any more."""
    host.ask("systemctl", "stop", f"{TIMER}.timer")


def forget_unit(host: Host) -> None:
    """No boot has anything to take back any more."""
    host.path(f"{_WANTS}/{UNIT}").unlink(missing_ok=True)
    host.path(f"{_UNITS}/{UNIT}").unlink(missing_ok=True)
