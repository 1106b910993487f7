"""What a member of a service that spans hosts sees of itself, and does to itself: unit, container, ledger.

/etc/tinderbox/<service>.pair.json     this host, the head, its address and port (by the controller)
/etc/tinderbox/<service>.pair.key      by what the members know each other (0600)
/run/tinderbox/<service>.pair.json     what the members last said, for other programs; a boot forgets it
/run/tinderbox/<service>.pair.start    of a worker: the head's start for which its part was started last
"""

from __future__ import annotations

import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.activation import BusyError, alone
    from modules.hostside.atomic import read_json, write_json, write_text
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import SETTINGS, Ledger, note_lost_gpu
    from modules.hostside.pair_rules import Unit
    from modules.hostside.service_unit import journal, run, unit_name, unit_state, why_not_ready
else:
    from activation import BusyError, alone
    from atomic import read_json, write_json, write_text
    from gpus_kept import gpus_kept
    from ledger import SETTINGS, Ledger, note_lost_gpu
    from pair_rules import Unit
    from service_unit import journal, run, unit_name, unit_state, why_not_ready

RUN = Path("/run/tinderbox")
MARK = "pair: "


def settings_file(service: str) -> Path:
    """Who belongs together."""
    return SETTINGS / f"{service}.pair.json"


def key_file(service: str) -> Path:
    """The members' key."""
    return SETTINGS / f"{service}.pair.key"


def is_head(service: str) -> bool:
    """Whether this host is the one that decides."""
    known = read_json(settings_file(service)) or {}
    return bool(known) and known.get("host") == known.get("head")


def state_file(service: str) -> Path:
    """What the agent last knew."""
    return RUN / f"{service}.pair.json"


def start_file(service: str) -> Path:
    """Of a worker: for which of the head's starts its part was started."""
    return RUN / f"{service}.pair.start"


def publish(service: str, document: dict[str, Any]) -> None:
    """Have other programs of this host know. `at`: by the clock that runs since the boot."""
    RUN.mkdir(exist_ok=True)
    with suppress(OSError):
        write_json(state_file(service), document | {"at": time.monotonic()})


def published(service: str, newest_s: float) -> dict[str, Any]:
    """What the agent knows; empty where it has said nothing for so long."""
    found: dict[str, Any] = read_json(state_file(service)) or {}
    return found if found and time.monotonic() - float(found.get("at") or 0) <= newest_s else {}


def unit_of(service: str) -> Unit:
    """The service's unit here."""
    shown = unit_state(unit_name(service))
    return Unit(
        active=shown.get("ActiveState", "unknown"),
        sub=shown.get("SubState", ""),
        result=shown.get("Result", "success"),
        invocation=shown.get("InvocationID", ""),
        enabled=shown.get("UnitFileState") == "enabled",
        job=shown.get("Job", "0") not in {"", "0"},
    )


def why_ended(service: str) -> str:
    """Why the last start here has come to its end, in one line."""
    shown = unit_state(unit_name(service))
    return why_not_ready(journal(unit_name(service), shown.get("InvocationID")), shown)


def say(text: str) -> None:
    """One line for the journal."""
    print(f"{MARK}{text}", flush=True)


def kill(service: str) -> None:
    """End the part that runs here at once: its unit fails by that. One that has no container yet is ended itself."""
    if run("docker", "kill", f"tinderbox-{service}") is None:
        subprocess.run(["systemctl", "kill", "--signal=SIGKILL", unit_name(service)], check=False)


def systemctl(*words: str) -> None:
    """Have systemd do it, without waiting for the outcome."""
    subprocess.run(["systemctl", *words], check=False)


def set_enabled(service: str, wanted: bool) -> None:
    """Whether a boot starts it."""
    with gpus_kept(note_lost_gpu):
        systemctl("enable" if wanted else "disable", "--quiet", unit_name(service))


def locked(ledger: Ledger) -> bool:
    """Whether another program is at work on the service."""
    try:
        with alone(ledger, wait=False):
            return False
    except (BusyError, OSError):
        return True


def follow(ledger: Ledger, release: str) -> None:
    """Put a release in force here as it is on the head. Raises `BusyError`, `OSError`."""
    with alone(ledger, wait=False):
        ledger.put_in_force(release)


def intact(ledger: Ledger, release: str) -> bool:
    """Whether the files of the release in force are what its entry says."""
    for file in (ledger.entry(release) or {}).get("files") or ():
        try:
            if Path(file["path"]).read_text(encoding="utf-8") != file["content"]:
                return False
        except OSError:
            return False
    return True


def note_start(service: str, generation: str) -> None:
    """From now on the part here is of that start of the head's."""
    RUN.mkdir(exist_ok=True)
    write_text(start_file(service), generation)


def noted_start(service: str) -> str:
    """For which of the head's starts the part here was started; empty since the boot."""
    try:
        return start_file(service).read_text(encoding="ascii").strip()
    except OSError:
        return ""
