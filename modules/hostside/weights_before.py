"""What a model's folder held before Tinderbox, and how it is had so again.

    /var/lib/tinderbox/weights/before/<repository>.<home>.json

The note is made the first time that Tinderbox touches a repository in a Hugging Face home. Only what a stamp of ours
names, and was not there before, is ever taken away: revisions that somebody else has fetched since are theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import weights_stamp as stamps
    from modules.hostside.atomic import read_json, write_json
else:
    import weights_stamp as stamps
    from atomic import read_json, write_json

# A home below this is ours, also where an older Tinderbox has left no note.
OWN = Path("/var/lib/tinderbox")
_LOCK = ".tinderbox.lock"
_FILE, _FOLDER = "file", "folder"


@dataclass(frozen=True)
class Before:
    """`entries`: path in the repository's folder → `file`, `folder`, or where a link leads.

    `home`: its home held something else, too. `references`: path → the commit that it named; none in an older note.
    """

    entries: dict[str, str]
    home: bool
    references: dict[str, str] = field(default_factory=dict)

    def had(self, path: Path, folder: Path) -> bool:
        """Whether a path of the repository's folder was there."""
        return path.relative_to(folder).as_posix() in self.entries


def note_file(repository: stamps.Repository) -> Path:
    """Where the note lies."""
    stamp = repository.stamp("0" * 40)
    home = stamp.name.rsplit(".", 2)[1]
    return stamp.parent / "before" / f"{repository.name.replace('/', '--')}.{home}.json"


def stamped(repository: stamps.Repository) -> list[Path]:
    """The stamps of a repository's revisions in its home."""
    pattern = f"{repository.name.replace('/', '--')}@*.{note_file(repository).name.rsplit('.', 2)[1]}.json"
    return sorted(repository.stamp("0" * 40).parent.glob(pattern))


def note(repository: stamps.Repository) -> None:
    """Note what is there, unless that was done before, or came too late. A home of our own needs none."""
    path = note_file(repository)
    if path.exists() or stamped(repository) or repository.home.is_relative_to(OWN):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = dict(_entries(repository.folder))
    references = {
        file.relative_to(repository.folder).as_posix(): _named(file)
        for file in sorted((repository.folder / "refs").rglob("*"))
        if file.is_file() and not file.is_symlink()
    }
    noted = {"home": str(repository.home), "home_was_there": _is_of_others(repository), "entries": entries}
    write_json(path, {**noted, "references": references})


def _is_of_others(repository: stamps.Repository) -> bool:
    """Whether the home holds more than that repository's folder, which whoever keeps others waiting has made."""
    home, hub = repository.home, repository.folder.parent
    return any(path != hub for path in home.glob("*")) or any(path != repository.folder for path in hub.glob("*"))


def _entries(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_symlink():
            yield path.relative_to(folder).as_posix(), f"-> {path.readlink()}"
        elif path.name != _LOCK:
            yield path.relative_to(folder).as_posix(), _FOLDER if path.is_dir() else _FILE


def before(repository: stamps.Repository) -> Before | None:
    """What was there; None where that is not known."""
    found = read_json(note_file(repository))
    if found is not None and isinstance(found.get("entries"), dict):
        entries = {str(path): str(kind) for path, kind in found["entries"].items()}  # type: ignore[attr-defined]
        references = found.get("references") or {}
        return Before(entries, bool(found["home_was_there"]), dict(references))  # type: ignore[call-overload]
    return Before({}, home=False) if repository.home.is_relative_to(OWN) else None


def brought(repository: stamps.Repository, commit: str, had: Before) -> list[Path]:
    """Blobs of a revision that came by Tinderbox, and that no other revision uses."""
    stamp = read_json(repository.stamp(commit)) or {}
    blobs = {repository.blob(file) for file in stamps.stamped_files(stamp)} if "files" in stamp else set()
    return sorted(blob for blob in blobs - used_elsewhere(repository, commit) if _ours(repository, blob, had))


def _ours(repository: stamps.Repository, blob: Path, had: Before) -> bool:
    return blob.exists() and not had.had(blob, repository.folder)


def used_elsewhere(repository: stamps.Repository, commit: str) -> set[Path]:
    """Blobs that a snapshot of another commit links to."""
    used = set()
    for snapshot in (repository.folder / "snapshots").glob("*"):
        if snapshot.name != commit:
            links = (entry for entry in snapshot.rglob("*") if entry.is_symlink())
            used |= {Path(os.path.normpath(link.parent / link.readlink())) for link in links}
    return used


def take_back(repository: stamps.Repository, commit: str, had: Before) -> None:
    """Have of a revision only what was there before. Its stamp goes last: a cut is found again."""
    folder, snapshot = repository.folder, repository.snapshot(commit)
    going = brought(repository, commit, had)
    for entry in sorted(snapshot.rglob("*"), reverse=True) if snapshot.is_dir() else ():
        kind = had.entries.get(entry.relative_to(folder).as_posix())
        if kind == _FILE and entry.is_symlink():
            _file_again(entry, folder / "blobs")
        elif kind is None and entry.is_symlink():
            entry.unlink()
    for blob in going:
        blob.unlink(missing_ok=True)
    for path in (repository.tree(commit), *_references(repository, commit)):
        if not had.had(path, folder):
            path.unlink(missing_ok=True)
        elif (named := had.references.get(path.relative_to(folder).as_posix(), commit)) != commit:
            _name_again(path, named)
    if not [path for path in stamped(repository) if path != repository.stamp(commit)]:
        (folder / _LOCK).unlink(missing_ok=True)
        for part in (folder / "blobs").glob("*.tinderbox-*.incomplete"):
            part.unlink()
    _drop_empty(repository, had)
    repository.stamp(commit).with_suffix(".pieces.json").unlink(missing_ok=True)
    repository.stamp(commit).unlink(missing_ok=True)
    if not stamped(repository):
        note_file(repository).unlink(missing_ok=True)


def _file_again(entry: Path, blobs: Path) -> None:
    """Have in the place of a link the file that it was, of a cache without links.

    By a second name of the blob, which costs no room, and keeps its owner. What is no blob there is its user's.
    """
    blob = Path(os.path.normpath(entry.parent / entry.readlink()))
    if blob.parent != blobs or blob.is_symlink() or not blob.is_file():
        return
    fresh = entry.with_name(f".{entry.name}.tinderbox")
    fresh.unlink(missing_ok=True)
    os.link(blob, fresh, follow_symlinks=False)
    fresh.replace(entry)


def _references(repository: stamps.Repository, commit: str) -> list[Path]:
    found = (path for path in (repository.folder / "refs").rglob("*") if path.is_file())
    return [path for path in found if _named(path).strip() == commit]


def _named(reference: Path) -> str:
    return reference.read_text(encoding="utf-8", errors="replace")


def _name_again(reference: Path, commit: str) -> None:
    """In its place, so that its owner and mode stay, and through no link: the folder is its user's."""
    with os.fdopen(os.open(reference, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW), "w", encoding="utf-8") as file:
        file.write(commit)


def _drop_empty(repository: stamps.Repository, had: Before) -> None:
    folder = repository.folder
    for path in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink() and not had.had(path, folder):
            with suppress(OSError):
                path.rmdir()
    # Those above hold others' models, too, and then stay by that.
    for path in (folder, *((folder.parent, repository.home) if not had.home else ())):
        if not had.entries:
            with suppress(OSError):
                path.rmdir()
