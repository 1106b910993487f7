"""Stop the services of Tinderbox for a while, and have them ready again afterwards, come what may."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import write_json
    from modules.hostside.drain import Door
    from modules.hostside.job import AFTERWARDS
    from modules.hostside.progress import Progress
    from modules.hostside.service_unit import unit_name
else:
    from atomic import write_json
    from drain import Door
    from job import AFTERWARDS
    from service_unit import unit_name

LEDGER = Path("/var/lib/tinderbox/ledger")
_DRAIN = str(Path(__file__).with_name("drain.py"))
_RUN = {"active", "activating", "reloading"}
# What crashed before and came back shall not be refused for that: this stop is no crash.
_FORGET = ("reset-failed",)
# All at once, and only then the wait: a load takes minutes.
_START = ("start", "--no-block")


class ServiceError(Exception):
    """A service could not be stopped, or is not ready again; the text says what to do."""


def running(ledger: Path = LEDGER) -> list[str]:
    """The units of our services that run, or are about to."""
    services = sorted(path.name for path in ledger.iterdir() if path.is_dir()) if ledger.is_dir() else []
    return [unit for unit in map(unit_name, services) if _state(unit) in _RUN]


@contextmanager
def paused(units: list[str], progress: Progress) -> Iterator[None]:
    """Stop the units; start them again when this is left, and wait until each is ready.

    Should this program be killed meanwhile, its job starts them (`AFTERWARDS`); should the host be restarted, its boot
    does, since the units stay enabled. Raises `ServiceError`.
    """
    note = Path(os.environ["TINDERBOX_JOB_DIR"]) / AFTERWARDS if "TINDERBOX_JOB_DIR" in os.environ else None
    # What takes no requests by now, as before its gate, takes none afterwards either.
    taking = [unit for unit in units if _door(unit).has_gateway and not _door(unit).is_closed]
    opened = [[sys.executable or "/usr/bin/python3", _DRAIN, "open", _service(unit)] for unit in taking]
    if note is not None:
        write_json(note, {"commands": [["systemctl", *_FORGET, *units], ["systemctl", *_START, *units], *opened]})
    try:
        for unit in units:
            progress.report(f"stopping {unit}, to have its memory")
            print(f"stopping {unit}: the build needs its memory", flush=True)
            _door(unit).hold(lambda step: print(step, flush=True))
            _systemctl("stop", unit, todo=f"look at: journalctl -u {unit}")
        yield
    finally:
        subprocess.run(["systemctl", *_FORGET, *units], capture_output=True, check=False)
        # Gateways are told that it is down until it is ready; one that does not come back keeps no other one shut.
        for unit in taking:
            _door(unit).open()
        _systemctl(*_START, *units, todo="start them by hand")
        if note is not None:
            note.unlink(missing_ok=True)
        _await_ready(units, progress)


def _service(unit: str) -> str:
    return unit.removeprefix("tinderbox-").removesuffix(".service")


def _door(unit: str) -> Door:
    return Door(_service(unit))


def _await_ready(units: list[str], progress: Progress) -> None:
    failed = []
    for unit in units:
        progress.report(f"waiting for {unit} to be ready again")
        print(f"starting {unit} again", flush=True)
        done = subprocess.run(["systemctl", "start", unit], capture_output=True, text=True, check=False)
        failed += [unit] if done.returncode != 0 else []
    if failed:
        raise ServiceError(
            f"{', '.join(failed)} ran before the build and did not get ready again: journalctl -u {failed[0]}"
        )


def _systemctl(*words: str, todo: str) -> None:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServiceError(f"systemctl {' '.join(words)}: {done.stderr.strip()}; {todo}")


def _state(unit: str) -> str:
    asked = ["systemctl", "show", "--property=ActiveState", "--value", unit]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
