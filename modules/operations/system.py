"""Settings of the operating system: memory kept for ssh, earlyoom, swapping, the GPU's clocks, the desktop."""

from __future__ import annotations

import json
from collections.abc import Generator

from pyinfra import host, logger
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.survey import Question
from modules.facts.system import PROGRAM, SystemSettings, SystemState
from modules.operations.apt import package_installed
from modules.operations.differences import differs, files_differ
from modules.operations.managed_files import ManagedFile, settle, unsettled
from modules.operations.require import unreadable
from modules.release import layout
from modules.release.unit import word
from modules.spec.settings import System

EARLYOOM = "earlyoom"
UNITS = "/etc/systemd/system"
# Percent of the memory that is left when earlyoom asks a process to end, and when it kills one. Swap does not count: a
# Spark that swaps is lost already, and earlyoom 1.7 would wait for both to run out.
_EARLYOOM = ("/usr/bin/earlyoom", "-m", "2,1", "-s", "100", "-r", "3600")
_PREFERRED = "(vllm|VLLM|sglang|llama-server|python)"
_AVOIDED = "^(systemd.*|sshd|dbus-.*|dockerd|containerd.*|journald|NetworkManager|agetty|sudo)$"
# A cap of the clocks has a floor, too: that of eugr/spark-vllm-docker, README.
_LOWEST_MHZ = 200


def earlyoom_text() -> str:
    """The drop-in of earlyoom's unit."""
    words = (*_EARLYOOM, "--prefer", _PREFERRED, "--avoid", _AVOIDED)
    return (
        "# By Tinderbox, system.earlyoom of the fleet file.\n[Service]\nExecStart=\n"
        f"ExecStart={' '.join(map(word, words))}\n"
        "# Engines are root's, and it has to end one while there is no memory.\n"
        "AmbientCapabilities=CAP_KILL CAP_IPC_LOCK\nCapabilityBoundingSet=CAP_KILL CAP_IPC_LOCK\n"
    )


def clocks_text(cap_mhz: int) -> str:
    """The unit that caps the GPU's clocks."""
    return (
        "# By Tinderbox, system.clock_cap_mhz of the fleet file. Unverified on hardware.\n"
        f"[Unit]\nDescription=Clocks of the GPU capped at {cap_mhz} MHz\nAfter=nvidia-persistenced.service\n\n"
        "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
        f"ExecStart=/usr/bin/nvidia-smi -lgc {_LOWEST_MHZ},{cap_mhz}\nExecStop=/usr/bin/nvidia-smi -rgc\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def _kept(section: str, amount: str) -> str:
    return f"# By Tinderbox, system.protect_ssh of the fleet file.\n[{section}]\nMemoryMin={amount}\n"


def system_files(system: System) -> list[ManagedFile]:
    """Every file of these settings; those that are not asked for are to be absent."""
    protect = system.protect_ssh
    # What a unit keeps is bounded by what the slice around it keeps. sshd is spared by the kernel's killer by itself.
    kept = {
        "ssh.service": _kept("Service", "192M"),
        "system.slice": _kept("Slice", "192M"),
        "user.slice": _kept("Slice", "4G"),
    }
    # Read after /etc/sysctl.conf, which Ubuntu links as 99-sysctl.conf.
    sysctl = None if system.swappiness is None else f"vm.swappiness = {system.swappiness}\n"
    cap = system.clock_cap_mhz
    return [
        *(ManagedFile(f"{UNITS}/{unit}.d/tinderbox.conf", text if protect else None) for unit, text in kept.items()),
        ManagedFile(f"{UNITS}/earlyoom.service.d/tinderbox.conf", earlyoom_text() if system.earlyoom else None),
        ManagedFile(f"{UNITS}/tinderbox-clocks.service", None if cap is None else clocks_text(cap)),
        ManagedFile("/etc/sysctl.d/99-tinderbox.conf", sysctl),
    ]


def wish_of(system: System, gateway: bool = False, agent: bool = False) -> dict[str, object]:
    """What `system_settings.py` is to bring about."""
    return {
        "earlyoom": system.earlyoom,
        "swappiness": system.swappiness,
        "clock_cap_mhz": system.clock_cap_mhz,
        "desktop": system.desktop,
        "end_desktop": system.end_desktop_sessions,
        "gateway": gateway,
        "agent": agent,
    }


def system_there(system: System, gateway: bool = False, agent: bool = False) -> Question[SystemState]:
    """How the host stands to what is wished."""
    paths = [file.path for file in system_files(system)]
    return Question(SystemSettings, {"paths": paths, "wish": wish_of(system, gateway, agent)})


@operation()
def system_settled(system: System, gateway: bool = False, agent: bool = False) -> Generator[PyinfraCommand, None, None]:
    """Have the operating system as the fleet file says; what is unset there is as it was before Tinderbox.

    + system: the host's settings of it
    + gateway: whether the fleet's gateway belongs here; one that does not is taken away
    + agent: whether what tells gateways of this host does
    """
    if system.earlyoom:
        yield from package_installed(EARLYOOM, "*", None)
    files, wish = system_files(system), wish_of(system, gateway, agent)
    found = system_there(system, gateway, agent).of(host)
    if found is None:
        yield from unreadable("the operating system's settings")
        return
    changes = unsettled(files, found.files)
    if not changes and not found.differences:
        host.noop("the operating system is as the fleet file says")
        return
    for difference in found.differences:
        logger.debug("%s: %s", host.name, difference)
        differs("the operating system", difference)
    files_differ(changes, found.files)
    yield from settle(changes)
    yield StringCommand(layout.PYTHON, PROGRAM, "apply", _stdin=json.dumps(wish))
