"""Tell what units of this host log, and where that is wanted go on telling. Changes nothing.

Standard input begins with one line of JSON: `units`; where to begin: `cursor` (after it), else `since` (seconds of the
epoch), else `lines` (the newest so many); `follow`. Where it is `attached`, signs of life come then: this ends with the
connection, however that ends, and when its controller has been silent for too long.

Each line of standard output is a JSON object: at first `root`, then entries (`at` in µs of the epoch, `unit`, `text`,
`level`, and `cursor`, from which the next look goes on without loss or doubles; no `text` where all of it is secret),
`live` (all that there was is told; now it is followed), and every few seconds `alive`. Secrets are masked before
anything leaves this host. The controller sends this file's text along, so that it also runs where nothing of ours, or
an older version, is installed.
"""

from __future__ import annotations

import glob
import json
import os
import select
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.masking import MASK, Masker
else:
    from masking import MASK, Masker

SETTINGS = "/etc/tinderbox"
# A controller says something every 5 s.
SILENCE_S, ALIVE_S = 60.0, 5.0
_SHORTEST_SECRET = 8
_FIELDS = "MESSAGE,UNIT,_SYSTEMD_UNIT,PRIORITY"
_writing = threading.Lock()


def tell(document: dict[str, Any]) -> None:
    """One line."""
    with _writing:
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()


def known_secrets(settings: str = SETTINGS) -> list[str]:
    """Values that services get by files that only root reads; the longest first, since one may be a part of another."""
    found = set()
    for path in glob.glob(f"{settings}/*.secret.env") + glob.glob(f"{settings}/*.key.env"):  # noqa: PTH207
        try:
            with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                found |= {line.partition("=")[2].strip() for line in file}
        except OSError:
            continue
    return sorted((value for value in found if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)


def command(wish: dict[str, Any], where: list[str], *, follow: bool) -> list[str]:
    """`journalctl` with where to begin."""
    words = ["journalctl", "--quiet", "--no-pager", "--all", "--output=json", f"--output-fields={_FIELDS}"]
    words += [f"--unit={unit}" for unit in wish["units"]]
    return [*words, *where, *(["--follow", "--no-tail"] if follow else [])]


def beginning(wish: dict[str, Any]) -> list[str]:
    """Where the wish says that it begins."""
    if wish.get("cursor"):
        return [f"--after-cursor={wish['cursor']}"]
    if wish.get("since") is not None:
        return [f"--since=@{wish['since']:.6f}"]
    return [f"--lines={wish['lines']}"]


class Teller:
    """Makes of journalctl's lines what is told. `cursor`: of the last one."""

    def __init__(self, units: list[str], secrets: list[str]) -> None:
        self._units, self._secrets = set(units), secrets
        self._maskers: dict[str, Masker] = {}
        self.cursor: str | None = None

    def entry(self, line: str) -> dict[str, Any] | None:
        """Of one line; None for one that is none."""
        try:
            found = json.loads(line)
            self.cursor = str(found["__CURSOR"])
            at = int(found["__REALTIME_TIMESTAMP"])
        except (ValueError, KeyError, TypeError):
            return None
        # systemd's own words of a unit are its own unit's.
        unit = next((one for one in (found.get("UNIT"), found.get("_SYSTEMD_UNIT")) if one in self._units), None)
        told: dict[str, Any] = {"at": at, "unit": unit, "cursor": self.cursor, "level": str(found.get("PRIORITY", "6"))}
        text = self._masked(str(unit), text_of(found.get("MESSAGE")))
        return told if text is None else {**told, "text": text}

    def _masked(self, unit: str, text: str) -> str | None:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        masker = self._maskers.setdefault(unit, Masker())
        lines = [shown for shown in map(masker.line, text.split("\n")) if shown is not None]
        return "\n".join(lines) if lines else None


def text_of(message: Any) -> str:
    """A message as text: what is no text, the journal gives as a list of bytes."""
    if isinstance(message, list):
        try:
            return bytes(message).decode("utf-8", errors="replace")
        except (TypeError, ValueError):
            return "\n".join(map(str, message))
    return "" if message is None else str(message)


def run(words: list[str], teller: Teller, processes: list[subprocess.Popen[str]]) -> int:
    """Tell of all that journalctl prints, to its end. Gives its exit status."""
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    ) as process:
        processes.append(process)
        for line in process.stdout or ():
            told = teller.entry(line)
            if told is not None:
                tell(told)
    return process.returncode


def end_with(source: int, processes: list[subprocess.Popen[str]], silence_s: float = SILENCE_S) -> None:
    """End this process, and what it has begun, when `source` ends or is silent for so long."""
    while select.select([source], [], [], silence_s)[0]:
        if not os.read(source, 4096):
            break
    end(processes)


def end(processes: list[subprocess.Popen[str]]) -> None:
    """End this process, and what it has begun."""
    for process in processes:
        process.kill()
        process.wait()
    os._exit(0)


def say_that_we_are_here(processes: list[subprocess.Popen[str]]) -> None:
    """As long as somebody listens."""
    while True:
        time.sleep(ALIVE_S)
        try:
            tell({"alive": time.time()})
        except OSError:
            end(processes)


def main() -> int:
    """Tell until there is no more, or as long as somebody listens."""
    # By the reader that has read this text, and may have read beyond it.
    wish: dict[str, Any] = json.loads(sys.stdin.readline())
    processes: list[subprocess.Popen[str]] = []
    if wish["attached"]:
        threading.Thread(target=end_with, args=(0, processes), daemon=True).start()
    threading.Thread(target=say_that_we_are_here, args=(processes,), daemon=True).start()
    # Without it journalctl shows what its user may read, and keeps silent on the rest.
    tell({"root": os.geteuid() == 0})
    began = time.time()
    teller = Teller(wish["units"], known_secrets())
    status = run(command(wish, beginning(wish), follow=False), teller, processes)
    if status == 0 and wish["follow"]:
        tell({"live": began, "cursor": teller.cursor})
        cursor = teller.cursor or wish.get("cursor")
        where = [f"--after-cursor={cursor}"] if cursor else [f"--since=@{began:.6f}"]
        status = run(command(wish, where, follow=True), teller, processes)
    return status


if __name__ == "__main__":
    try:
        code = main()
    except BrokenPipeError:
        code = 0
    # A thread may be reading.
    os._exit(code)
