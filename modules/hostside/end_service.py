"""Stop a service, or take it off this host.

    end_service.py stop|remove SERVICE --by WHO

`stop`: what serves ends, and neither a crash nor a boot brings it back; the next run of Tinderbox does. `remove`: the
same, and then its unit, container, files in /etc/tinderbox, caches, measurements, the jobs of its releases and, last of
all, its ledger go, so that what was cut is found and done again. Images, weights and encodings stay: other services may
need them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import release_story as story
    from modules.hostside.activation import BusyError, alone
    from modules.hostside.drain import Door
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import SETTINGS, STATE, Ledger, note_lost_gpu
    from modules.hostside.pair_unit import end as end_pair
    from modules.hostside.service_unit import run, unit_name, unit_state, watch_unit
else:
    import release_story as story
    from activation import BusyError, alone
    from drain import Door
    from gpus_kept import gpus_kept
    from ledger import SETTINGS, STATE, Ledger, note_lost_gpu
    from pair_unit import end as end_pair
    from service_unit import run, unit_name, unit_state, watch_unit

UNITS = Path("/etc/systemd/system")
_RUNS = {"active", "activating", "deactivating", "reloading"}


class EndError(Exception):
    """It could not be done; the text says what to do."""


def stop(ledger: Ledger) -> None:
    """End what serves, and wait for it. Raises `EndError`."""
    unit = unit_name(ledger.service)
    with gpus_kept(lambda service: note_lost_gpu(service, ledger.directory.parents[1])):
        subprocess.run(["systemctl", "disable", "--quiet", unit], check=False)
    door = Door(ledger.service)
    door.hold(lambda step: print(step, flush=True))
    subprocess.run(["systemctl", "stop", unit], check=False)
    # A unit that is down is what gateways are told of from now on.
    door.open()
    if unit_state(unit).get("ActiveState") in _RUNS:
        raise EndError(f"{unit} does not stop; look at: journalctl -u {unit}")
    subprocess.run(["systemctl", "reset-failed", unit], capture_output=True, check=False)


def remove(ledger: Ledger, state: Path, settings: Path, units: Path) -> None:
    """Take away all that is the service's alone; it is stopped."""
    run("docker", "rm", "--force", f"tinderbox-{ledger.service}")
    for unit in (unit_name(ledger.service), watch_unit(ledger.service)):
        (units / unit).unlink(missing_ok=True)
    with gpus_kept(lambda service: note_lost_gpu(service, state)):
        subprocess.run(["systemctl", "daemon-reload"], check=True)
    for ending in ("env", "secret.env", "key.env", "labels", "memory.json"):
        for path in settings.glob(f"{ledger.service}.{ending}*"):
            path.unlink(missing_ok=True)
    drop_ins = units / f"{unit_name(ledger.service)}.d"
    ours = (drop_ins, state / "caches" / ledger.service, state / "gates" / ledger.service)
    for folder in (*ours, *jobs(ledger, state / "jobs"), ledger.directory):
        if folder.exists():
            shutil.rmtree(folder)


def jobs(ledger: Ledger, folder: Path) -> list[Path]:
    """What jobs of its releases have left. By the releases, since another service's name may begin with this one's."""
    name, releases = ledger.service, [path.stem for path in ledger.directory.glob("*.json") if not path.is_symlink()]
    found = [folder / f"start-{name}-{key}" for key in (*releases, "settle")]
    return found + [path for key in releases for path in folder.glob(f"gate-{name}-{key}-*")]


def end(verb: str, service: str, by: str, root: tuple[Path, Path, Path] = (STATE, SETTINGS, UNITS)) -> None:
    """See above. Raises `EndError`, and `BusyError` while another program starts the service."""
    state, settings, units = root
    if not (state / "ledger" / service).is_dir():
        return
    ledger = Ledger(service, state)
    if verb == "remove" and root == (STATE, SETTINGS, UNITS):
        # First, so that nobody starts anew what is stopped here.
        end_pair(service)
    with alone(ledger, wait=False):
        stop(ledger)
        current = ledger.linked("current")
        if verb == "remove":
            remove(ledger, state, settings, units)
        elif current is not None and ledger.entry(current) is not None:
            ledger.mark(current, story.STOPPED, by=by)


def main() -> int:
    """0 when it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["stop", "remove"])
    parser.add_argument("service")
    parser.add_argument("--by", default="")
    options = parser.parse_args()
    try:
        end(options.verb, options.service, options.by)
    except (EndError, BusyError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
