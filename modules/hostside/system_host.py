"""The host as the settings of its operating system change it: what it says, and what it had before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.run_program import run
else:
    from atomic import read_json, write_json
    from run_program import run

UNDO = Path("/var/lib/tinderbox/undo")


class SettingError(Exception):
    """It could not be brought about; the text says what to do."""


@dataclass
class System:
    """The host. What it is made with differs only in tests."""

    proc: Path = Path("/proc")
    undo: Path = UNDO
    units: Path = Path("/etc/systemd/system")
    ask: Callable[..., tuple[int, str]] = run

    def must(self, *command: str) -> None:
        """Run a program that has to succeed."""
        code, said = self.ask(*command)
        if code != 0:
            raise SettingError(f"{' '.join(command)} ended with exit status {code}: {said}")

    def shown(self, unit: str, name: str) -> str:
        """A property of a unit, empty where there is none."""
        code, said = self.ask("systemctl", "show", "--property", name, "--value", unit)
        return said if code == 0 else ""

    def kept(self) -> dict[str, Any]:
        """What the host had before, by setting."""
        return read_json(self.undo / "system.json") or {}

    def keep(self, name: str, value: object) -> None:
        """Keep what the host has, the first time."""
        if name not in self.kept():
            self.note(name, value)

    def note(self, name: str, value: object) -> None:
        """Note what was done."""
        self.undo.mkdir(parents=True, exist_ok=True)
        write_json(self.undo / "system.json", {**self.kept(), name: value})

    def forget(self, *names: str) -> None:
        """It is as it was."""
        write_json(self.undo / "system.json", {key: value for key, value in self.kept().items() if key not in names})
