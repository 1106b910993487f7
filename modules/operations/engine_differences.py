"""What of a service differs from its release, told in a dry run."""

from __future__ import annotations

from modules.facts.files import FileState
from modules.facts.service import ServiceState
from modules.hostside.version_changes import told
from modules.operations.differences import differs, files_differ
from modules.release import layout
from modules.release.decision import Action, changes
from modules.release.files import HostFile
from modules.spec.release import Release


def differs_from(release: Release, files: tuple[HostFile, ...], found: ServiceState, action: Action) -> None:
    """Note the files with their lines, the release in force, and how the unit stands."""
    others = [file for file in files if found.files.get(file.path) != file.sha256]
    there = {path: FileState(sha, "?", "?") if sha is not None else None for path, sha in found.files.items()}
    files_differ(others, there, secret=[file.path for file in others if file.secret])
    unit, of_files = f"unit {layout.unit_name(release.service)}", {f"{file.path} differs" for file in others}
    for change in changes(release, files, found):
        if change not in of_files:
            differs(f"service {release.service}", f"{change}; release {release.id} should serve")
    if action is Action.START:
        differs(unit, f"is {found.unit.active} ({found.unit.sub}), and should be active")
    elif action is Action.ATTACH:
        differs(unit, f"is {found.unit.active} ({found.unit.sub}): somebody has started it, and nobody saw it ready")
    elif action is Action.RESTART:
        differs(unit, f"still has what was there before: {told(found.outdated)}")
