"""All that decides what is to be done about a service, as one JSON object: one round trip for the controller.

Nothing here changes anything. What can not be learned is null, never guessed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import api_key
    from modules.hostside import release_story as story
    from modules.hostside.activation import read_pending
    from modules.hostside.attestation_file import attestation_file
    from modules.hostside.drain import Door
    from modules.hostside.ledger import Ledger
    from modules.hostside.service_unit import run, unit_name, unit_state
    from modules.hostside.start_note import read_start
    from modules.hostside.versions import image_id, versions
else:
    import api_key
    import release_story as story
    from activation import read_pending
    from attestation_file import attestation_file
    from drain import Door
    from ledger import Ledger
    from service_unit import run, unit_name, unit_state
    from start_note import read_start
    from versions import image_id, versions


def sha256(path: Path) -> str | None:
    """Hash of a file, or None."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def container_state(name: str) -> dict[str, Any] | None:
    """The container's release and whether it runs, or None where there is none."""
    release, running = '{{json (index .Config.Labels "tinderbox.release")}}', "{{json .State.Running}}"
    form = f'{{"release": {release}, "running": {running}}}'
    shown = run("docker", "container", "inspect", "--format", form, name)
    return json.loads(shown) if shown else None


def model_commit(repository: Path, revision: str) -> str | None:
    """The commit that a revision stands for in a Hugging Face cache."""
    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    try:
        return (repository / "refs" / revision).read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def attested(ledger: Ledger, release: str | None) -> bool:
    """Whether the ledger has with the release what was seen in its image. True where nothing was looked for in it."""
    entry = ledger.entry(release) if release is not None else None
    image = ((entry or {}).get("release") or {}).get("image")
    seen = sha256(attestation_file(image)) if image is not None else None
    if entry is None or release is None or seen is None:
        return True
    return seen == (entry.get("attestation") or {}).get("sha256") == sha256(ledger.attestation(release))


def draft_state(options: argparse.Namespace) -> dict[str, Any]:
    """Of the draft model, where there is to be one."""
    if options.draft is None:
        return {}
    commit = model_commit(options.draft, options.draft_revision)
    snapshot = options.draft / "snapshots" / commit if commit else None
    return {"draft_commit": commit, "draft_is_here": bool(snapshot and (snapshot / options.draft_file).exists())}


def standings(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Release → where it stands, and why it is not tried again, if so."""
    last_good = ledger.linked("last-good")
    paths = [path for path in ledger.directory.glob("*.json") if not path.is_symlink()]
    entries = {path.stem: ledger.entry(path.stem) for path in paths}
    return {
        release: {"standing": story.standing(entry), "barred": story.bars(entry, release, last_good)}
        for release, entry in entries.items()
        if entry is not None and "events" in entry
    }


def systemd_version() -> int | None:
    """Major version of systemd."""
    found = re.match(r"systemd (\d+)", run("systemctl", "--version") or "")
    return int(found.group(1)) if found else None


def state(options: argparse.Namespace) -> dict[str, Any]:
    """The whole answer."""
    ledger = Ledger(options.service)
    commit = model_commit(options.repository, options.revision)
    snapshot = options.repository / "snapshots" / commit if commit else None
    good = ledger.linked("last-good")
    image = image_id(options.image)
    now, reboot = versions(image)
    unit = unit_state(unit_name(options.service))
    current = ledger.linked("current")
    pending = read_pending(ledger)
    return {
        "systemd": systemd_version(),
        "made_key": api_key.fingerprint(options.service, options.key_variable) if options.key_variable else None,
        "unit": unit,
        "files": {path: sha256(Path(path)) for path in options.file},
        "current": current,
        "attested": attested(ledger, current),
        "versions": now,
        "reboot": reboot,
        "proved_on": (ledger.entry(current) or {}).get("proved_on") if current is not None else None,
        "started_on": read_start(ledger, unit.get("InvocationID")),
        "last_good": good,
        "releases": standings(ledger),
        "pending": pending.document() if pending is not None else None,
        "closed": Door(options.service).is_closed,
        "good_is_restorable": good is not None and ledger.entry(good) is not None,
        "docker_answers": image is not None or now["docker"] is not None,
        "image": image,
        "container": container_state(f"tinderbox-{options.service}"),
        "commit": commit,
        "model_is_here": bool(snapshot and (snapshot / options.model_file).exists()),
        **draft_state(options),
        "missing_encodings": [path for path in options.encoding if not Path(path).is_file()],
    }


def main() -> int:
    """Print the state as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service")
    parser.add_argument("--image", required=True)
    parser.add_argument("--repository", type=Path, required=True, help="the model's directory in the hub cache")
    parser.add_argument("--revision", required=True)
    parser.add_argument("--model-file", default="config.json", help="what must be in the snapshot")
    parser.add_argument("--file", action="append", default=[], help="a file to hash")
    parser.add_argument("--draft", type=Path, help="the draft model's directory in the hub cache")
    parser.add_argument("--draft-revision", default="")
    parser.add_argument("--draft-file", default="config.json")
    parser.add_argument("--key-variable", help="of the API key that this host makes")
    parser.add_argument("--encoding", action="append", default=[], help="a file that must be there")
    sys.stdout.write(json.dumps(state(parser.parse_args())) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
