"""How a timer of systemd's stands."""

from __future__ import annotations

from dataclasses import dataclass

from pyinfra.api import QuoteString, StringCommand
from typing_extensions import override

from modules.facts.base import HostFact


@dataclass(frozen=True)
class TimerState:
    """`waiting`: it is started. `stale`: systemd has not read its file, or that of what it starts, since it changed."""

    enabled: bool
    waiting: bool
    stale: bool


class Timer(HostFact[TimerState]):
    """The state of `NAME.timer`.

    + unit: its name, and that of the service which it starts, without ending
    """

    @override
    def command(self, unit: str) -> StringCommand:
        units = [QuoteString(f"{unit}.{kind}") for kind in ("timer", "service")]
        return StringCommand("systemctl show --property=UnitFileState,ActiveState,NeedDaemonReload", *units)

    @override
    def parse(self, lines: list[str]) -> TimerState:
        timer: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition("=")
            timer.setdefault(name, value)
        stale = any(line == "NeedDaemonReload=yes" for line in lines)
        return TimerState(timer["UnitFileState"] == "enabled", timer["ActiveState"] == "active", stale)
