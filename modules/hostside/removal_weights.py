"""Layer weights of a removal: revisions of models that came by Tinderbox, and encodings."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import weights_before as former
    from modules.hostside import weights_stamp as stamps
    from modules.hostside.atomic import read_json
    from modules.hostside.disk_sizes import occupied
    from modules.hostside.docker_store import Store
    from modules.hostside.kept_releases import kept, unread
    from modules.hostside.ledger import SETTINGS, STATE
    from modules.hostside.removal import WEIGHTS, Thing
    from modules.hostside.weights_blobs import alone
else:
    import weights_before as former
    import weights_stamp as stamps
    from atomic import read_json
    from disk_sizes import occupied
    from kept_releases import kept, unread
    from ledger import SETTINGS, STATE
    from removal import WEIGHTS, Thing
    from weights_blobs import alone

REVISION, FOLDER, FILE = "weights", "folder", "file"
FOLDERS = ("encodings",)


def revisions() -> list[tuple[stamps.Repository, str]]:
    """Those that Tinderbox has verified here."""
    found = []
    for path in sorted(stamps.STAMPS.glob("*.json")):
        stamp = read_json(path)
        if stamp is not None and "snapshot" in stamp:
            home = Path(str(stamp["snapshot"])).parents[3]
            repository, commit = stamps.Repository(home, str(stamp["repository"])), str(stamp["commit"])
            if repository.stamp(commit) == path:
                found.append((repository, commit))
    return found


def things(store: Store | None, state: Path = STATE, settings: Path = SETTINGS) -> Iterator[Thing]:
    """What there is of this layer. `store`: None: docker does not answer."""
    needed: dict[tuple[str, str], set[str]] = {}
    releases = kept(state)
    for one in releases:
        for model in one.models:
            needed.setdefault(model, set()).add(one.service)
    everybody, perhaps = tuple(sorted({one.service for one in releases})), unread(releases)
    opened = open_files(store)
    for repository, commit in revisions():
        had = former.before(repository)
        blobs = former.brought(repository, commit, had) if had is not None else []
        users = [] if store is None or not blobs else store.mounted(repository.folder)
        users += [f"{name} has it open" for path, name in opened.items() if path.is_relative_to(repository.folder)]
        note = "its files were here before Tinderbox, and stay" if had is not None and not blobs else ""
        if had is None:
            users = [
                "it is not known whether it was here before: an older Tinderbox made no note. If it is of no use: "
                f"hf cache delete, or rm -r {repository.folder}"
            ]
        yield Thing(
            WEIGHTS, REVISION, f"{repository.name}@{commit[:12]}", sum(occupied(blob) for blob in blobs),
            tuple(sorted({*needed.get((repository.name, commit), ()), *perhaps})), tuple(dict.fromkeys(users)), note,
            {"home": str(repository.home), "repository": repository.name, "commit": commit},
        )  # fmt: skip
    for name in FOLDERS:
        if (state / name).exists():
            yield Thing(WEIGHTS, FOLDER, str(state / name), occupied(state / name), everybody)
    for path in sorted(settings.glob("hub-token.*")):
        yield Thing(WEIGHTS, FILE, str(path), note="a token of the hub")


def take(thing: Thing) -> None:
    """Have it gone."""
    if thing.kind == REVISION:
        repository = stamps.Repository(Path(thing.data["home"]), str(thing.data["repository"]))
        had, commit = former.before(repository), str(thing.data["commit"])
        if had is not None:
            if repository.folder.is_dir():
                with alone(repository):
                    former.take_back(repository, commit, had)
            else:
                former.take_back(repository, commit, had)
    elif thing.kind == FOLDER:
        shutil.rmtree(thing.name)
    else:
        Path(thing.name).unlink(missing_ok=True)


def tidy(state: Path = STATE) -> None:
    """Take away what speaks of no model any more."""
    if revisions():
        return
    shutil.rmtree(state / "weights", ignore_errors=True)
    shutil.rmtree(state / "probes" / "load", ignore_errors=True)
    own = state / "huggingface"
    if own.is_dir() and not any(own.glob("hub/models--*")) and not any(own.glob("hub/datasets--*")):
        shutil.rmtree(own)


def open_files(store: Store | None, proc: Path = Path("/proc")) -> dict[Path, str]:
    """File of a Hugging Face home → the process that has it open or in its memory; our own engines left out."""
    ours = {one.id for one in (store.containers if store is not None else ()) if one.ours}
    found: dict[Path, str] = {}
    for folder in proc.glob("[0-9]*"):
        try:
            if any(one in (folder / "cgroup").read_text() for one in ours):
                continue
            names = {str(entry.readlink()) for entry in (folder / "fd").iterdir()}
            names |= set(re.findall(r"(/\S*models--\S+)$", (folder / "maps").read_text(), re.MULTILINE))
            name = (folder / "comm").read_text().strip()
        except OSError:
            continue
        who = f"process {folder.name} ({name})"
        found |= {Path(each): who for each in names if "/models--" in each and int(folder.name) != os.getpid()}
    return found
