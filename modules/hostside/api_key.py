"""The API key of a service that others can reach and whose fleet file names no key: made once, here, and kept.

    api_key.py SERVICE VARIABLE

It lies in `/etc/tinderbox/<service>.key.env`, mode 0600, as `VARIABLE=value`: the form in which docker gives it to the
engine. A second run leaves it as it is; where the engine became another one, which reads another variable, that gets
the same value. The value is never printed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import write_text
else:
    from atomic import write_text

SETTINGS = Path("/etc/tinderbox")
_BYTES = 32


def key_file(service: str, settings: Path = SETTINGS) -> Path:
    """Where the key lies."""
    return settings / f"{service}.key.env"


def variables(path: Path) -> dict[str, str]:
    """What an environment file holds; nothing where there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {name: value for name, _, value in (line.partition("=") for line in lines) if value}


def fingerprint(service: str, variable: str, settings: Path = SETTINGS) -> str | None:
    """Enough of the key's hash to see that it changed, as releases have it; None where there is no key yet."""
    value = variables(key_file(service, settings)).get(variable)
    return None if value is None else hashlib.sha256(value.encode()).hexdigest()[:12]


def have_key(service: str, variable: str, settings: Path = SETTINGS) -> bool:
    """Make the key unless it is there. Returns whether it was made. Two programs at once make one key."""
    settings.mkdir(parents=True, exist_ok=True)
    path = key_file(service, settings)
    folder = os.open(settings, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        known = variables(path)
        if variable in known:
            path.chmod(0o600)
            return False
        value = next(iter(known.values()), None) or secrets.token_urlsafe(_BYTES)
        held = {**known, variable: value}
        write_text(path, "".join(f"{name}={value}\n" for name, value in sorted(held.items())), 0o600)
    finally:
        os.close(folder)
    return not known


def main(arguments: list[str]) -> int:
    """0 when the key is there."""
    if len(arguments) != 2:
        sys.stderr.write((__doc__ or "").splitlines()[2].strip() + "\n")
        return 2
    service, variable = arguments
    have_key(service, variable)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
