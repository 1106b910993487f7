"""What is changed of netplan's file and of the ports by it, and when that must wait."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyinfra import host
from pyinfra.api import StringCommand
from pyinfra.api.command import PyinfraCommand

from modules.fabric.netplan import MARK, NETPLAN, netplan_diff, netplan_text
from modules.fabric.ports import PlannedPort
from modules.fabric.wish import is_given, moved
from modules.facts.fabric import FabricState
from modules.facts.netplan import NetplanUnapplied
from modules.operations.managed_files import ManagedFile, is_settled
from modules.release import layout
from modules.spec.fabric import Fabric

PROGRAM = str(layout.PROGRAMS / "fabric_apply.py")
# A host that nobody reaches any more takes its change back after so long.
CONFIRM_S = 90


def unapplied_edits(found: FabricState) -> str:
    """Why netplan is left alone: it would bring about what others have written and not applied; empty where none has.

    A rollback could not take that back, and the host may be reached by such an interface.
    """
    fabrics = {port.name for port in found.ports}
    others = {path: name for path, name in (host.get_fact(NetplanUnapplied) or {}).items() if name not in fabrics}
    if not others:
        return ""
    return (
        f"the host's netplan files say something new of {', '.join(sorted(set(others.values())))} that was not applied "
        f"({', '.join(sorted(others))} would change), and this change would bring it about, too. Apply it first "
        "(`sudo netplan try`, then `sudo netplan apply`), or take it out of /etc/netplan; then run again"
    )


def netplan_changes(fabric: Fabric | None, ports: Sequence[PlannedPort], found: FabricState) -> list[PyinfraCommand]:
    """Have netplan's file and the ports as wished, having shown the difference; nothing where they are."""
    ours = found.text is not None and found.text.startswith(MARK)
    text = netplan_text(fabric, ports) if fabric is not None else None
    if fabric is None and not ours and not found.pending:
        return []
    away = moved(ports, found.foreign)
    given = all(is_given(port) for port in ports)
    in_place = is_settled(ManagedFile(NETPLAN, text, "600"), found.files.get(NETPLAN))
    if in_place and given and not away and not found.pending:
        return []
    lines = netplan_diff(found.text, text)
    for line in lines:
        host.log(line)
    for file in away:
        host.log(f"{file} is kept aside until fabric is taken out")
    wish = {
        "path": NETPLAN,
        "text": text,
        "ports": {port.name: {"address": str(port.address), "mtu": port.mtu} for port in ports},
        "move": away,
        "confirm_s": CONFIRM_S,
    }
    return [
        StringCommand(layout.PYTHON, PROGRAM, "apply", _stdin=json.dumps(wish)),
        # A command of its own: that it arrives says that the host is still reached.
        StringCommand(layout.PYTHON, PROGRAM, "confirm"),
    ]
