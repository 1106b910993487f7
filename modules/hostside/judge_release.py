"""Note a gate's judgement of the release in force, and what follows from it.

    judge_release.py < JSON

`service`, `id`, `judgement` (verdict, thresholds, lines, causes), `good`: it did not fail; `proven`: a figure or a
fault speaks against the server, and not merely the lack of a figure; `reason`: in one line. A release becomes good here
only if it was seen ready since it was put in force. One that has failed by figures while there is another good one is
marked, and that one is to come back: start_service.py --settle does it, now or in the next run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.activation import BusyError, Pending, alone, forget_pending, read_pending, write_pending
    from modules.hostside.atomic import write_json
    from modules.hostside.drain import Door
    from modules.hostside.ledger import STATE, Ledger, now
    from modules.hostside.release_story import FAILED_GATE, NOT_MEASURED, may_become_good
    from modules.hostside.version_changes import Versions, changes, told
else:
    from activation import BusyError, Pending, alone, forget_pending, read_pending, write_pending
    from atomic import write_json
    from drain import Door
    from ledger import STATE, Ledger, now
    from release_story import FAILED_GATE, NOT_MEASURED, may_become_good
    from version_changes import changes, told


def judge(request: dict[str, Any], root: Path = STATE) -> None:
    """See above. Raises `SystemExit` where the judgement is of a release that is not in force, or not ready."""
    ledger, release = Ledger(request["service"], root), request["id"]
    with alone(ledger, wait=False):
        current = ledger.linked("current")
        if current != release:
            raise SystemExit(f"release {current} is in force, and not {release}, which was measured; run again")
        if request["good"] and not may_become_good(ledger.entry(release)):
            raise SystemExit(f"release {release} was not seen ready since it was started; run stage engine first")
        measured_on = _note(request, root)
        if request["good"]:
            ledger.prove(release, request["judgement"]["verdict"], measured_on)
            Door(ledger.service).open()
            forget_pending(ledger, release)
        elif request.get("proven", True):
            _failed(ledger, release, request.get("reason") or request["judgement"]["verdict"], measured_on)
        else:
            ledger.mark(release, NOT_MEASURED, request.get("reason"))
            Door(ledger.service).open()


def _note(request: dict[str, Any], root: Path) -> Versions | None:
    """Returns what the machine was when it was measured; None of a result from before that was kept."""
    path = root / "gates" / request["service"] / f"{request['id']}.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    result["judgement"] = {**request["judgement"], "at": now()}
    write_json(path, result)
    versions: Versions | None = result.get("versions")
    return versions


def _failed(ledger: Ledger, release: str, reason: str, measured_on: Versions | None) -> None:
    """The way back is written down first: a release that is marked and has one does not stay."""
    good, pending = ledger.linked("last-good"), read_pending(ledger)
    if good is not None and good != release:
        mine = pending if pending is not None and pending.release == release else Pending(release)
        write_pending(ledger, Pending(release, good, mine.ungated, mine.by, mine.instead))
    changed = told(changes((ledger.entry(release) or {}).get("proved_on") or {}, measured_on or {}))
    ledger.mark(release, FAILED_GATE, reason, changed=changed)
    if good in {None, release}:
        # It goes on serving; else it stays drained until the other one is back.
        Door(ledger.service).open()
        forget_pending(ledger, release)


def main() -> int:
    """0 when it is noted."""
    try:
        judge(json.load(sys.stdin))
    except BusyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
