"""How an operation says, in a dry run, what on its host is not as it should be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Protocol

from pyinfra import host, state

from modules.diagnosis.mask import mask_lines
from modules.facts.files import FileState, FileTexts
from modules.reporting.differences import Difference, are_asked_for, note_difference

# Of a file's difference: so many lines are told, each so long.
_LINES, _WIDTH = 8, 160


class WantedFile(Protocol):
    """A file as it should be. `content`: None: no file should be there."""

    @property
    def path(self) -> str: ...  # noqa: D102

    @property
    def content(self) -> str | None: ...  # noqa: D102


def differs(thing: str, detail: str) -> None:
    """Note that something is not as it should be. Says nothing outside of a dry run whose differences are asked for.

    + thing: its name on the host: a path, a package, a unit
    + detail: how it differs; may have several lines, and holds no secret
    """
    if not _is_asked():
        return
    assert host.current_op_hash is not None
    operation = ", ".join(state.get_op_meta(host.current_op_hash).names)
    note_difference(Difference(host=host.name, operation=operation, thing=thing, detail=detail))


def for_others() -> None:
    """Note that what the operation under way would do is of use to other hosts: its own is as it should be."""
    differs("", "")


def files_differ(
    files: Iterable[WantedFile], found: Mapping[str, FileState | None], *, secret: Iterable[str] = ()
) -> None:
    """Note how files differ from what they should be, with the lines that do; one question to the host for all.

    + files: those that differ
    + found: what is known of them
    + secret: paths of those whose content is not shown
    """
    if not _is_asked():
        return
    hidden = set(secret)
    files = list(files)
    changed = [file.path for file in files if file.content is not None and found.get(file.path) is not None]
    shown = [path for path in changed if path not in hidden]
    held = host.get_fact(FileTexts, paths=shown) if shown else None
    texts = held or {}
    for file in files:
        detail = file_detail(file, found.get(file.path), texts.get(file.path))
        differs(_named(file.path), "\n".join(mask_lines(detail.splitlines())))


def _is_asked() -> bool:
    return are_asked_for() and host.current_op_hash is not None and not state.is_executing


def _named(path: str) -> str:
    """`unit x.service` says more than where it lies."""
    folder, _, name = path.rpartition("/")
    return f"unit {name}" if folder == "/etc/systemd/system" else path


def file_detail(wanted: WantedFile, found: FileState | None, text: str | None) -> str:
    """How a file differs. `text`: what it holds; None: that is not known, or not to be shown. Pure."""
    if wanted.content is None:
        return "is there, and should not be"
    if found is None:
        return "is not there"
    if text is None:
        return "holds something else, or has another mode or owner (not shown: it may hold secrets)"
    if text == wanted.content:
        return f"has mode {found.mode} and owner {found.owner}, and should not"
    return "differs:\n" + "\n".join(_changed_lines(text, wanted.content))


def _changed_lines(was: str, wanted: str) -> list[str]:
    lines = [
        line[:_WIDTH]
        for line in difflib.unified_diff(was.splitlines(), wanted.splitlines(), n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    # It would look like nothing at all.
    lines = lines or ["(only in how it ends)"]
    return lines if len(lines) <= _LINES else [*lines[: _LINES - 1], f"... {len(lines) - _LINES + 1} more lines"]
