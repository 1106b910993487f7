"""What a host has of the fleet's gateway, and of the agent that tells gateways of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import StringCommand
from typing_extensions import override

from modules.facts.base import HostFact
from modules.facts.files import FileState, FileStates
from modules.facts.program import AskProgram
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "gateway_host.py")
SOCKET_UNIT, SERVICE_UNIT = "tinderbox-agent.socket", "tinderbox-agent.service"


class GatewayDifferences(HostFact[tuple[str, ...]]):
    """What of the gateway is not as wished, in words; None before Tinderbox's programs are on the host.

    + digest: of its files
    + unit_sha256: of its unit
    """

    @override
    def command(self, digest: str, unit_sha256: str) -> StringCommand:
        return AskProgram(layout.PYTHON, PROGRAM, ["check", digest, unit_sha256])

    @override
    def parse(self, lines: list[str]) -> tuple[str, ...]:
        return tuple(json.loads(lines[-1]))


@dataclass(frozen=True)
class AgentState:
    """`listens`: its socket is there and comes with a boot. `stale`: systemd has not read its units."""

    files: dict[str, FileState | None]
    listens: bool
    stale: bool


class Agent(HostFact[AgentState]):
    """The agent's files and units in one round trip.

    + paths: absolute paths of the files
    """

    @override
    def command(self, paths: Sequence[str]) -> StringCommand:
        units = f"{SOCKET_UNIT} {SERVICE_UNIT}"
        shown = f"systemctl show -p ActiveState -p UnitFileState {SOCKET_UNIT} | tr '\\n' ' '"
        stale = f"systemctl show -p NeedDaemonReload --value {units} | tr '\\n' ' '"
        return StringCommand(f"{shown}; echo; {stale}; echo;", FileStates().command(paths))

    @override
    def parse(self, lines: list[str]) -> AgentState:
        shown = lines[0].split()
        listens = {"ActiveState=active", "UnitFileState=enabled"} <= set(shown)
        return AgentState(FileStates().parse(lines[2:]), listens, "yes" in lines[1].split())
