"""Have the program that keeps a service together over its hosts run, or be gone.

    pair_unit.py begin|end SERVICE

`begin`: read its unit, start it now and at every boot; one that runs is started anew. `end`: stop it, and remove its
unit, settings and key.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import pair_place as place
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import note_lost_gpu
else:
    import pair_place as place
    from gpus_kept import gpus_kept
    from ledger import note_lost_gpu

UNITS = Path("/etc/systemd/system")


def begin(service: str) -> int:
    """Returns systemd's exit status."""
    unit = f"tinderbox-pair@{service}.service"
    with gpus_kept(note_lost_gpu):
        subprocess.run(["systemctl", "daemon-reload"], check=True)
        subprocess.run(["systemctl", "enable", "--quiet", unit], check=True)
    return subprocess.run(["systemctl", "restart", unit], check=False).returncode


def end(service: str, units: Path = UNITS) -> int:
    """0: nothing of it is left."""
    unit = f"tinderbox-pair@{service}.service"
    if not (units / unit).exists():
        return 0
    with gpus_kept(note_lost_gpu):
        subprocess.run(["systemctl", "disable", "--quiet", "--now", unit], check=False)
        (units / unit).unlink(missing_ok=True)
        subprocess.run(["systemctl", "daemon-reload"], check=True)
    for path in (place.settings_file(service), place.key_file(service), place.state_file(service)):
        path.unlink(missing_ok=True)
    place.start_file(service).unlink(missing_ok=True)
    place.key_file(service).with_name(f"{place.key_file(service).name}.new").unlink(missing_ok=True)
    return 0


def main(arguments: list[str]) -> int:
    """Entry point."""
    if len(arguments) != 2 or arguments[0] not in {"begin", "end"}:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    return begin(arguments[1]) if arguments[0] == "begin" else end(arguments[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
