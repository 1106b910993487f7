"""Services of Tinderbox that the fleet file no longer gives this host: they make way for those that it does.

    neighbours.py settle

Which services belong here together is in /etc/tinderbox/services.json; their memory plans count each other in. One that
is left over from an older fleet file (taken out of it, or renamed) is in nobody's plan. `settle` has the units of the
wanted ones exclude it (`Conflicts=`, which systemd heeds in both directions); it does not come back with a boot where
one of them does. It runs on until a wanted one starts; whoever starts one by `make_way` can have it back if that fails.

Of those that belong here `settle` has systemd start one after the other (`After=`), by the fleet file's order. That
holds for a boot, too, and needs none of them to succeed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import release_story as story
    from modules.hostside.activation import BusyError, alone
    from modules.hostside.atomic import read_json, write_text
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import SETTINGS, STATE, Ledger, note_lost_gpu
    from modules.hostside.load_turn import Order
    from modules.hostside.service_unit import unit_name, unit_state
else:
    import release_story as story
    from activation import BusyError, alone
    from atomic import read_json, write_text
    from gpus_kept import gpus_kept
    from ledger import SETTINGS, STATE, Ledger, note_lost_gpu
    from load_turn import Order
    from service_unit import unit_name, unit_state

UNITS = Path("/etc/systemd/system")
_RUNS = {"active", "activating", "deactivating", "reloading"}
_HEAD = "# Written by Tinderbox: services that its fleet file no longer gives this host.\n"
_ORDER_HEAD = "# Written by Tinderbox: which services of this host start before this one, and how long all may take.\n"
# Beside the wait for the others, the memory gate looks for strange engines and for memory, a minute each.
_GATE_S = 240.0
# As in modules/release/unit.py: attempts, and the longest pause and stop between them.
_ATTEMPTS, _PAUSES_S = 3, 360.0


def wanted(settings: Path = SETTINGS) -> set[str] | None:
    """The services of the fleet file; None before the host was told."""
    names = (read_json(settings / "services.json") or {}).get("services")
    return {str(name) for name in names} if isinstance(names, list) else None


def left_over(state: Path = STATE, settings: Path | None = None) -> list[str]:
    """The services that this host has and the fleet file has not."""
    names, folder = wanted(SETTINGS if settings is None else settings), state / "ledger"
    if names is None or not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name not in names)


def drop_in(service: str, units: Path = UNITS) -> Path:
    """Where the unit of a service is told whom it excludes. Not part of a release: it hangs on the host's past."""
    return units / f"{unit_name(service)}.d" / "neighbours.conf"


def exclusion(others: Sequence[str]) -> str:
    """Text of that file. The order has the other one's stop end before this one starts."""
    names = " ".join(unit_name(other) for other in others)
    return f"{_HEAD}[Unit]\nConflicts={names}\nAfter={names}\n"


def order_file(service: str, units: Path = UNITS) -> Path:
    """Where the unit of a service is told whom it starts after. Not part of a release, which knows no other service."""
    return drop_in(service, units).with_name("order.conf")


def turn(service: str, order: Order) -> str | None:
    """Text of that file; None for a service that is alone on its host.

    It waits for the others' loads in its memory gate, so its start may take as long as all of theirs; how long the
    engine itself may take is `await_ready.py`'s to watch. More attempts than before do not go into the longer window.
    """
    if service not in order.names or len(order.names) < 2:
        return None
    before = " ".join(unit_name(other) for other in order.names[: order.names.index(service)])
    all_s = order.seconds() + _GATE_S
    after = f"After={before}\n" if before else ""
    window = f"StartLimitIntervalSec={_ATTEMPTS * (all_s + _PAUSES_S):.0f}\n" if service not in order.spans else ""
    return f"{_ORDER_HEAD}[Unit]\n{after}{window}\n[Service]\nTimeoutStartSec={all_s:.0f}\n"


def settle(state: Path = STATE, settings: Path = SETTINGS, units: Path = UNITS) -> None:
    """Have it all as said above."""
    others = left_over(state, settings)
    ours = sorted(wanted(settings) or ())
    order = Order.read(settings / "services.json")
    excluded = exclusion(others) if others else None
    changed = [service for service in ours if _placed(drop_in(service, units), excluded)]
    changed += [service for service in (*ours, *others) if _placed(order_file(service, units), turn(service, order))]
    # Until a wanted one was ever started, what is left over is better than nothing after a boot.
    enabled = list(filter(_enabled, others)) if any(map(_enabled, ours)) else []
    if changed or enabled:
        with gpus_kept(lambda service: note_lost_gpu(service, state)):
            for other in enabled:
                subprocess.run(["systemctl", "disable", "--quiet", unit_name(other)], check=False)
            subprocess.run(["systemctl", "daemon-reload"], check=True)


def _enabled(service: str) -> bool:
    return unit_state(unit_name(service)).get("UnitFileState") == "enabled"


def _placed(path: Path, text: str | None) -> bool:
    """Whether the file was made, changed or taken away (`text`: None)."""
    found = path.read_text(encoding="utf-8") if path.exists() else None
    if text == found:
        return False
    if text is None:
        path.unlink()
        with suppress(OSError):
            path.parent.rmdir()  # unless the owner has a file of their own there
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return True


def in_the_way(ledger: Ledger) -> tuple[str, ...]:
    """Those that run and are to make way for the service of `ledger`."""
    others = left_over(ledger.directory.parents[1])
    return tuple(
        other
        for other in others
        if other != ledger.service and unit_state(unit_name(other)).get("ActiveState") in _RUNS
    )


def make_way(ledger: Ledger, others: Sequence[str]) -> None:
    """Stop them, over a boot, too, and note whom for."""
    for other in others:
        with gpus_kept(lambda service: note_lost_gpu(service, ledger.directory.parents[1])):
            subprocess.run(["systemctl", "disable", "--quiet", unit_name(other)], check=False)
        subprocess.run(["systemctl", "stop", unit_name(other)], check=False)
        _note(other, ledger, story.STOPPED, f"it made way for service {ledger.service}: the fleet file has it no more")


def have_back(ledger: Ledger, others: Sequence[str]) -> list[str]:
    """Start them again, since what they made way for does not serve. Returns those that get ready."""
    back = []
    for other in others:
        with gpus_kept(lambda service: note_lost_gpu(service, ledger.directory.parents[1])):
            subprocess.run(["systemctl", "enable", "--quiet", unit_name(other)], check=False)
        if subprocess.run(["systemctl", "start", unit_name(other)], check=False).returncode == 0:
            _note(other, ledger, story.RESTORED, f"service {ledger.service} did not get ready")
            back.append(other)
    return back


def _note(other: str, ledger: Ledger, event: str, note: str) -> None:
    book = Ledger(other, ledger.directory.parents[1])
    current = book.linked("current")
    # Somebody who is at work on it writes its story.
    with suppress(BusyError), alone(book, wait=False):
        if current is not None and book.entry(current) is not None:
            book.mark(current, event, note)


def main(arguments: list[str]) -> int:
    """Entry point."""
    if arguments != ["settle"]:
        print((__doc__ or "").splitlines()[2].strip(), file=sys.stderr)
        return 2
    settle()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
