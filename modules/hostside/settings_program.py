"""What the programs that bring about a host's settings have in common: `check`, `apply`, one setting after another."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import note_lost_gpu
    from modules.hostside.system_host import SettingError, System
else:
    from gpus_kept import gpus_kept
    from ledger import note_lost_gpu
    from system_host import SettingError, System

Change = tuple[str, Callable[[], None]]
"""What is not as wished, in words, and what has it so."""
Setting = Callable[[System, dict[str, Any]], Iterator[Change]]


def differences(settings: Sequence[Setting], system: System, wish: dict[str, Any]) -> list[str]:
    """What is not as wished."""
    return [what for setting in settings for what, _ in setting(system, wish)]


def applied(
    settings: Sequence[Setting], system: System, wish: dict[str, Any], errors: tuple[type[Exception], ...] = ()
) -> list[str]:
    """Have all of it as wished; one that fails keeps none of the others back. Returns what went wrong.

    `errors`: what else of a setting's failing is told so. Once something was changed, `wish` has `started`.
    """
    failed: list[str] = []
    known: tuple[type[Exception], ...] = (SettingError, OSError, subprocess.CalledProcessError, *errors)
    for setting in settings:
        try:
            for what, settle in setting(system, wish):
                print(what, flush=True)
                settle()
                wish["started"] = True
        except known as error:
            failed.append(str(error))
    return failed


def main(
    arguments: list[str],
    about: str | None,
    check: Callable[[System, dict[str, Any]], object],
    apply: Callable[[System, dict[str, Any]], list[str]],
) -> int:
    """Entry point of such a program. `about`: its docstring, whose third line says how it is called."""
    if arguments not in (["check"], ["apply"]):
        sys.stderr.write((about or "").splitlines()[2].strip() + "\n")
        return 2
    wish = json.load(sys.stdin)
    if arguments == ["check"]:
        print(json.dumps(check(System(), wish)))
        return 0
    # systemd reads its units anew for most of them.
    with gpus_kept(note_lost_gpu):
        failed = apply(System(), wish)
    sys.stderr.write("".join(f"{line}\n" for line in failed))
    return 1 if failed else 0
