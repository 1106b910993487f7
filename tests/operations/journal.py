"""A `journalctl` for tests: of a file in which each line is an entry, and its number the cursor."""

from __future__ import annotations

import json
from pathlib import Path

_PROGRAM = """\
#!/usr/bin/env python3
import os, sys, time
options = dict(word.partition("=")[::2] for word in sys.argv[1:])
path, at = {path!r}, 0
open(f"{{path}}.{{os.getpid()}}.running", "w").close()
lines = open(path).read().splitlines()
if "--after-cursor" in options:
    at = int(options["--after-cursor"])
elif "--lines" in options:
    at = max(0, len(lines) - int(options["--lines"]))
while True:
    lines = open(path).read().splitlines()
    for line in lines[at:]:
        print(line, flush=True)
    at = len(lines)
    if "--follow" not in options:
        break
    time.sleep(0.02)
os.remove(f"{{path}}.{{os.getpid()}}.running")
"""


class Journal:
    """Of a host whose programs are in `bin`."""

    def __init__(self, folder: Path) -> None:
        self.bin, self._path, self._count = folder / "bin", folder / "journal", 0
        self.bin.mkdir(parents=True)
        self._path.touch()
        program = self.bin / "journalctl"
        program.write_text(_PROGRAM.format(path=str(self._path)))
        program.chmod(0o755)

    def log(self, text: str, at_s: float) -> None:
        """Add an entry."""
        self._count += 1
        entry = {"__CURSOR": str(self._count), "__REALTIME_TIMESTAMP": str(round(at_s * 1e6)), "MESSAGE": text}
        with self._path.open("a") as file:
            file.write(json.dumps({**entry, "_SYSTEMD_UNIT": "tinderbox-gpt-oss.service"}) + "\n")

    def followers(self) -> list[int]:
        """Processes of `journalctl` that are there."""
        pids = [int(path.name.split(".")[1]) for path in self._path.parent.glob("journal.*.running")]
        return [pid for pid in pids if Path(f"/proc/{pid}").exists()]
