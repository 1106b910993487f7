"""Restart dockerd with changed files; when it does not start with them, the former ones are put back.

    restart_docker.py < files.json

Standard input holds a JSON object: path → {"text": …, "mode": octal digits}, or null for a file to take away. Placing
and restarting are one program, which goes on when the connection that asked for it drops. What was there before
Tinderbox is kept once, in `UNDO`.
Exit status: 0 dockerd answers, 1 it does not (reason on standard error; the former files are back).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import write_text
else:
    from atomic import write_text

CONFIG = "/etc/docker/daemon.json"
UNDO = Path("/var/lib/tinderbox/undo/files")
START_TIMEOUT_S = 90

# What a file holds and its mode; None: no file.
File = tuple[str, int] | None


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program and keep what it says."""
    return subprocess.run(command, capture_output=True, text=True, check=False)


def wanted(document: str) -> dict[str, File]:
    """Read standard input."""
    return {
        path: None if file is None else (file["text"], int(file["mode"], 8))
        for path, file in json.loads(document).items()
    }


def complaint(text: str) -> str | None:
    """What dockerd has against a daemon.json, None where nothing or where it is too old (before 23) to be asked."""
    if "--validate" not in run("dockerd", "--help").stdout:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".json") as trial:
        trial.write(text)
        trial.flush()
        asked = run("dockerd", "--validate", f"--config-file={trial.name}")
    return None if asked.returncode == 0 else asked.stderr.strip()


def former(path: Path) -> File:
    """What a file holds now."""
    return (path.read_text(), path.stat().st_mode & 0o777) if path.exists() else None


def keep(path: Path, undo: Path) -> None:
    """Keep what was there before Tinderbox, once: the file, or a marker that there was none."""
    kept = undo / path.relative_to("/")
    absent = kept.with_name(f"{kept.name}.absent")
    if kept.exists() or absent.exists():
        return
    kept.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        shutil.copy2(path, kept)
    else:
        absent.touch()


def place(files: Mapping[str, File]) -> None:
    """Put the files there, or take them away."""
    for path, file in ((Path(name), file) for name, file in files.items()):
        if file is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, *file)


def restart() -> str | None:
    """Restart dockerd and wait until it answers. None when it does, else what it said."""
    run("systemctl", "daemon-reload")
    run("systemctl", "reset-failed", "docker.service")
    restarted = run("systemctl", "restart", "docker.service")
    give_up = time.monotonic() + START_TIMEOUT_S
    while restarted.returncode == 0 and time.monotonic() < give_up:
        if run("docker", "info").returncode == 0:
            return None
        time.sleep(0.5)
    journal = run("journalctl", "--unit=docker.service", "--lines=10", "--no-pager", "--output=cat").stdout
    return f"{restarted.stderr.strip()}\n{journal.strip()}".strip()


def main() -> int:
    """See the module's text."""
    files = wanted(sys.stdin.read())
    config = files.get(CONFIG)
    objection = complaint(config[0]) if config is not None else None
    if objection is not None:
        print(f"dockerd refuses the new {CONFIG}; nothing was changed:\n{objection}", file=sys.stderr)
        return 1
    before = {path: former(Path(path)) for path in files}
    for path in files:
        keep(Path(path), UNDO)
    place(files)
    said = restart()
    if said is None:
        return 0
    place(before)
    outcome = "runs with them" if restart() is None else "does not start with them either"
    names = ", ".join(files) or "no changed file"
    print(
        f"dockerd did not start with {names}; its journal ended:\n{said}\n"
        f"The former files are back, and dockerd {outcome}.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
