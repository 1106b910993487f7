"""The ledger of releases on this host: install one, put an earlier one back, note what became of it.

    /var/lib/tinderbox/ledger/<service>/<release id>.json   the release, its files, what happened to it and when
    /var/lib/tinderbox/ledger/<service>/<release id>.attestation.json   what was seen in its image
    /var/lib/tinderbox/ledger/<service>/current             → the release whose files are in force
    /var/lib/tinderbox/ledger/<service>/last-good           → the last one that served well enough

Every file and link lands by rename, files of the release before `current`, so that a run cut anywhere leaves either the
old state or one that the next run sees as unfinished. Secrets are written to their own file and nowhere else.

Usage: ledger.py install|judge < JSON | restore|attest SERVICE RELEASE | mark SERVICE RELEASE EVENT [NOTE]
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
else:
    from atomic import read_json, write_json, write_text
    from attestation_file import attestation_file

STATE = Path("/var/lib/tinderbox")
GOOD = "good"


def now() -> str:
    """UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


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
        memory_plan: dict[str, Any] | None = None,
    ) -> None:
        """Write a release's entry; what is known of its past stays."""
        self.directory.mkdir(parents=True, exist_ok=True)
        known = self.entry(release) or {}
        kept = {"attestation": known["attestation"]} if "attestation" in known else {}
        entry = kept | {
            "id": release,
            "service": self.service,
            "release": content,
            "files": [file for file in files if not file["secret"]],
            "memory_plan": memory_plan,
            "events": [*known.get("events", []), {"at": now(), "event": "installed"}],
        }
        write_json(self.entry_file(release), entry)

    def mark(self, release: str, event: str, note: str | None = None) -> None:
        """Add an event to a release's entry; `good` also makes it the last good one."""
        entry = self.entry(release)
        if entry is None:
            raise SystemExit(f"ledger: {self.entry_file(release)} is missing or unreadable")
        entry["events"].append({"at": now(), "event": event, **({"note": note} if note else {})})
        write_json(self.entry_file(release), entry)
        if event == GOOD:
            point(self.directory / "last-good", f"{release}.json")

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

    def put_in_force(self, release: str, files: list[dict[str, Any]]) -> None:
        """Write the release's files and let systemd read them."""
        for file in files:
            path = Path(file["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, file["content"], 0o600 if file["secret"] else 0o644)
        point(self.directory / "current", f"{release}.json")
        unit = f"tinderbox-{self.service}.service"
        for command in (["daemon-reload"], ["enable", "--quiet", unit]):
            subprocess.run(["systemctl", *command], check=True)


def install(request: dict[str, Any], root: Path = STATE) -> None:
    """Record a release and put it in force. `request`: service, id, release, files, directories, memory_plan."""
    ledger = Ledger(request["service"], root)
    for directory in request["directories"]:
        Path(directory).mkdir(parents=True, exist_ok=True)
    ledger.record(request["id"], request["release"], request["files"], request.get("memory_plan"))
    attest(request["service"], request["id"], root)
    ledger.put_in_force(request["id"], request["files"])


def attest(service: str, release: str, root: Path = STATE) -> None:
    """Keep what was seen last in a release's image with the release. An entry of before has none until then."""
    ledger = Ledger(service, root)
    image = ((ledger.entry(release) or {}).get("release") or {}).get("image")
    if image is not None:
        ledger.attest(release, attestation_file(image, root))


def restore(service: str, release: str, root: Path = STATE) -> None:
    """Put an earlier release's files back in force; secrets stay as they are."""
    ledger = Ledger(service, root)
    entry = ledger.entry(release)
    if entry is None:
        raise SystemExit(f"ledger: {ledger.entry_file(release)} is missing or unreadable")
    ledger.put_in_force(release, entry["files"])
    ledger.mark(release, "restored")


def judge(request: dict[str, Any], root: Path = STATE) -> None:
    """Note a gate's judgement beside the measurement it was made of. `request`: service, id, judgement, good."""
    path = root / "gates" / request["service"] / f"{request['id']}.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    result["judgement"] = {**request["judgement"], "at": now()}
    write_json(path, result)
    event = GOOD if request["good"] else "gate failed"
    Ledger(request["service"], root).mark(request["id"], event, request["judgement"]["verdict"])


def main(arguments: list[str]) -> int:
    """Run one command of the usage above."""
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command == "install" and not rest:
        install(json.load(sys.stdin))
    elif command == "judge" and not rest:
        judge(json.load(sys.stdin))
    elif command == "restore" and len(rest) == 2:
        restore(rest[0], rest[1])
    elif command == "attest" and len(rest) == 2:
        attest(rest[0], rest[1])
    elif command == "mark" and len(rest) in {3, 4}:
        Ledger(rest[0]).mark(*rest[1:])
    else:
        sys.stderr.write((__doc__ or "").splitlines()[-1] + "\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
