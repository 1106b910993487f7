"""The ledger of releases on this host: stage one, put it in force, note what became of it.

    /var/lib/tinderbox/ledger/<service>/<release id>.json   the release, its files, what happened to it and when
    /var/lib/tinderbox/ledger/<service>/<release id>.attestation.json   what was seen in its image
    /var/lib/tinderbox/ledger/<service>/current             → the release whose files are in force
    /var/lib/tinderbox/ledger/<service>/last-good           → the last one that served well enough
    /var/lib/tinderbox/ledger/<service>/pending             an activation that is under way (activation.py)
    /var/lib/tinderbox/ledger/<service>/started             what the machine was at the last start (start_note.py)
    /var/lib/tinderbox/ledger/<service>/load-stops          how many loads the load guard has stopped (load_stops.py)

Every file and link lands by rename. A release is staged while the one before it serves: that touches none of the files
in force. It is put in force by start_service.py, while nothing of the service runs: files first, then `current`. So
what runs is what `current` names, at every moment. Secrets are written to their own file and nowhere else.

Usage: ledger.py stage < JSON | attest SERVICE RELEASE
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json, write_text
    from modules.hostside.attestation_file import attestation_file
    from modules.hostside.gpus_kept import NOTE, gpus_kept
    from modules.hostside.release_story import GOOD, PROVED_AGAIN, RESTARTED, was_good
    from modules.hostside.version_changes import Versions, changes, told
else:
    from atomic import read_json, write_json, write_text
    from attestation_file import attestation_file
    from gpus_kept import NOTE, gpus_kept
    from release_story import GOOD, PROVED_AGAIN, RESTARTED, was_good
    from version_changes import changes, told

STATE = Path("/var/lib/tinderbox")
SETTINGS = Path("/etc/tinderbox")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def now() -> str:
    """UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def uptime() -> tuple[str, float]:
    """Which boot of the host this is, and the seconds of it by the clock that no one sets, as systemd notes them."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return boot, time.clock_gettime(time.CLOCK_MONOTONIC)


def point(link: Path, target: str) -> None:
    """Make `link` a symbolic link to `target`, replacing what it was at once."""
    link.parent.mkdir(parents=True, exist_ok=True)
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


class Ledger:
    """The ledger of one service. `root` differs from the host's only in tests."""

    def __init__(self, service: str, root: Path = STATE) -> None:
        self.service = service
        self.directory = root / "ledger" / service

    def entry_file(self, release: str) -> Path:
        """Where a release stands."""
        return self.directory / f"{release}.json"

    def attestation(self, release: str) -> Path:
        """What was seen in the release's image, kept for as long as the ledger is."""
        return self.directory / f"{release}.attestation.json"

    def failure_log(self, release: str) -> Path:
        """What a start of the release that failed has logged."""
        return self.directory / f"{release}.failed.log"

    def wedged_log(self, release: str) -> Path:
        """What the host showed when the release's server was last found to generate no more."""
        return self.directory / f"{release}.wedged.log"

    def entry(self, release: str) -> dict[str, Any] | None:
        """A release's entry, or None where there is none that can be read."""
        return read_json(self.entry_file(release))

    def linked(self, name: str) -> str | None:
        """The release that `current` or `last-good` names."""
        try:
            return (self.directory / name).readlink().stem
        except OSError:
            return None

    def record(
        self,
        release: str,
        content: dict[str, Any],
        files: list[dict[str, Any]],
        **more: dict[str, Any] | list[str] | str | None,
    ) -> None:
        """Have a release's entry, and its secrets beside the files in force; what is known of its past stays."""
        self.directory.mkdir(parents=True, exist_ok=True)
        secrets = [file for file in files if file["secret"]]
        for file in secrets:
            path = Path(file["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            for left in path.parent.glob(f"{path.name}.*"):
                left.unlink()
            write_text(staged_file(path, release), file["content"], 0o600)
        known = self.entry(release) or {}
        kept = {name: known[name] for name in ("attestation", "proved_on") if name in known}
        entry = kept | {
            "id": release,
            "service": self.service,
            "release": content,
            "files": [file for file in files if not file["secret"]],
            "secret_files": [file["path"] for file in secrets],
            "events": known.get("events", []),
        }
        write_json(self.entry_file(release), entry | more)

    def mark(
        self, release: str, event: str, note: str | None = None, proved_on: Versions | None = None, **more: str | None
    ) -> None:
        """Add an event to a release's entry; `good` also makes it the last good one.

        `proved_on`: what the machine was when it was found good. `more`: what else is known of the event.
        """
        entry = self.entry(release)
        if entry is None:
            raise SystemExit(f"ledger: {self.entry_file(release)} is missing or unreadable")
        known = {name: value for name, value in {"note": note, **more}.items() if value}
        if event in {GOOD, PROVED_AGAIN}:
            # For how long it has served since then shall not hang on a clock that may be set.
            boot, up_s = uptime()
            known |= {"boot": boot, "up_s": f"{up_s:.0f}"}
        entry["events"].append({"at": now(), "event": event, **known})
        write_json(self.entry_file(release), entry | ({} if proved_on is None else {"proved_on": dict(proved_on)}))
        if event in {GOOD, PROVED_AGAIN}:
            self.point_good(release)
            self._drop_secrets(entry)

    def prove(self, release: str, note: str, on: Versions | None) -> None:
        """Mark it good; one that was good before something of the machine was upgraded is proved again."""
        entry = self.entry(release)
        changed = told(changes((entry or {}).get("proved_on") or {}, on or {}))
        again = bool(changed) and was_good(entry)
        self.mark(release, PROVED_AGAIN if again else GOOD, note, on, changed=changed if again else None)

    def point_good(self, release: str) -> None:
        """Make it the last good one."""
        point(self.directory / "last-good", f"{release}.json")

    def _drop_secrets(self, entry: dict[str, Any]) -> None:
        """A good release has no need of a way back, so the secrets of one before it go, where it has none itself."""
        if "secret_files" in entry and not entry["secret_files"]:
            (SETTINGS / f"{self.service}.secret.env").unlink(missing_ok=True)

    def attest(self, release: str, seen: Path) -> None:
        """Keep what was seen in the release's image: a copy beside the entry, and its hash in it.

        Nothing was asked of some images: of those there is none.
        """
        entry = self.entry(release)
        if entry is None:
            raise SystemExit(f"ledger: {self.entry_file(release)} is missing or unreadable")
        if not seen.exists():
            return
        text = seen.read_text(encoding="utf-8")
        write_text(self.attestation(release), text)
        of = {"sha256": hashlib.sha256(text.encode()).hexdigest(), "image": json.loads(text).get("image")}
        write_json(self.entry_file(release), entry | {"attestation": of})

    def put_in_force(self, release: str) -> None:
        """Write the release's files and let systemd read them. Nothing of the service may run meanwhile."""
        entry = self.entry(release)
        if entry is None:
            raise SystemExit(f"ledger: {self.entry_file(release)} is missing or unreadable")
        for file in entry["files"]:
            path = Path(file["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, file["content"])
        for path in map(Path, entry.get("secret_files") or ()):
            if staged_file(path, release).exists():
                staged_file(path, release).replace(path)
        point(self.directory / "current", f"{release}.json")
        unit = f"tinderbox-{self.service}.service"
        with gpus_kept(lambda service: note_lost_gpu(service, self.directory.parents[1])):
            for command in (["daemon-reload"], ["enable", "--quiet", unit]):
                subprocess.run(["systemctl", *command], check=True)


def note_lost_gpu(service: str, root: Path = STATE) -> None:
    """Tell in the story of its release that a service is restarted, and why."""
    ledger = Ledger(service, root)
    current = ledger.linked("current")
    if current is not None and ledger.entry(current) is not None:
        ledger.mark(current, RESTARTED, NOTE)


def staged_file(path: Path, release: str) -> Path:
    """Where the content of a secret file waits until its release is put in force."""
    return path.with_name(f"{path.name}.{release}")


def stage(request: dict[str, Any], root: Path = STATE) -> None:
    """Have all of a release on the host but not in force.

    `request`: service, id, release, files, caches (names), and where they are known memory_plan and image_id.
    """
    known = {name: request.get(name) for name in ("memory_plan", "image_id", "caches")}
    Ledger(request["service"], root).record(request["id"], request["release"], request["files"], **known)
    attest(request["service"], request["id"], root)


def attest(service: str, release: str, root: Path = STATE) -> None:
    """Keep what was seen last in a release's image with the release. An entry of before has none until then."""
    ledger = Ledger(service, root)
    image = ((ledger.entry(release) or {}).get("release") or {}).get("image")
    if image is not None:
        ledger.attest(release, attestation_file(image, root))


def main(arguments: list[str]) -> int:
    """Run one command of the usage above."""
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command == "stage" and not rest:
        stage(json.load(sys.stdin))
    elif command == "attest" and len(rest) == 2:
        attest(rest[0], rest[1])
    else:
        sys.stderr.write((__doc__ or "").splitlines()[-1] + "\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
