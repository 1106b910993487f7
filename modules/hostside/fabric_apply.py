"""Change what netplan says of the fabric's ports, in a way that a mistake takes back by itself.

    fabric_apply.py apply < WISH    have our file and these ports as wished
    fabric_apply.py confirm         the controller still reaches this host: keep it
    fabric_apply.py rollback        nobody has confirmed: have it as it was before
    fabric_apply.py boot            the same, before anything configures the network

WISH, as JSON: `path` (of our netplan file), `text` (null: as it was before the first change of ours), `ports` (name →
`address` with its prefix), `move` (files of others that are to be away meanwhile), `confirm_s` (seconds until it is
taken back). netplan reads the files in another place first. Exit status: 0 done, 1 not, and then all is as before.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.fabric_guard import HOME, arm, forget_unit, stop_timer
    from modules.hostside.fabric_host import FabricError, Host, Kept, lock_of
else:
    from atomic import read_json, write_json
    from fabric_guard import HOME, arm, forget_unit, stop_timer
    from fabric_host import FabricError, Host, Kept, lock_of

_ADDRESSES_S = 8.0


def former(host: Host) -> dict[str, Any]:
    """What was before the first change of ours (`files`, `mtus`), and what our last one gave (`ports`)."""
    noted = read_json(host.path(f"{HOME}/former.json"))
    # An undoing that was cut short has taken the note away already.
    pending: Any = read_json(host.path(f"{HOME}/pending.json")) or {}
    return noted or pending.get("former") or {"files": {}, "mtus": {}, "ports": {}}


def wanted_files(host: Host, wish: dict[str, Any]) -> Kept:
    """Every file as it is to be."""
    before: Kept = former(host)["files"]
    if wish["text"] is None:
        return {wish["path"]: None, **before}
    ours = {wish["path"]: {"text": wish["text"], "mode": 0o600}}
    return {**dict.fromkeys([*before, *wish["move"]], None), **ours}


def apply(host: Host, wish: dict[str, Any]) -> list[str]:
    """Have the files and the ports as wished, to be confirmed. Returns what to tell."""
    files, before = wanted_files(host, wish), former(host)
    if files and host.ask("netplan", "help")[0] == 127:
        raise FabricError("netplan is not installed: `sudo apt-get install netplan.io`")
    host.try_out(files)
    stop_timer(host)
    pending = host.path(f"{HOME}/pending.json")
    # A change that was cut short left what was before it: that, and not its half, is what a rollback brings.
    if not pending.exists():
        everything = {"files": host.kept(files), "mtus": host.mtus(wish["ports"]), "former": before}
        write_json(pending, everything, 0o600)
    arm(host, Path(__file__).resolve(), wish["confirm_s"])
    gone = {port: had for port, had in before["ports"].items() if port not in wish["ports"]}
    try:
        _note_former(host, wish, files, before)
        host.place(files)
        host.activate({**wish["ports"], **gone})
        host.release(gone, before["mtus"])
    except (FabricError, OSError) as error:
        rollback(host)
        stop_timer(host)
        raise FabricError(f"{error}; all is as it was before") from None
    late = host.await_addresses(wish["ports"], _ADDRESSES_S)
    told = [f"{port}: {wish['ports'][port]['address']}" for port in sorted(wish["ports"]) if port not in late]
    return told + [f"{port}: no address yet, as without a cable" for port in late]


def _note_former(host: Host, wish: dict[str, Any], files: Kept, before: dict[str, Any]) -> None:
    path = host.path(f"{HOME}/former.json")
    if wish["text"] is None:
        path.unlink(missing_ok=True)
        return
    kept = {**host.kept(files), **before["files"]}
    mtus = {**host.mtus(wish["ports"]), **before["mtus"]}
    write_json(path, {"files": kept, "mtus": mtus, "ports": wish["ports"]}, 0o600)


def confirm(host: Host) -> None:
    """Keep it."""
    pending = host.path(f"{HOME}/pending.json")
    if not pending.exists():
        raise FabricError("nobody confirmed in time, so the ports were set back to what they had before: run again")
    stop_timer(host)
    pending.unlink()
    forget_unit(host)


def rollback(host: Host, at_boot: bool = False) -> None:
    """Have it as it was before the change that nobody confirmed.

    `at_boot`: nothing has configured the ports yet, so what will do that reads the former files.
    """
    pending = host.path(f"{HOME}/pending.json")
    kept = read_json(pending)
    if kept is None:
        return
    files: Any = kept["files"]
    before: Any = kept["former"]
    given = former(host)["ports"]
    host.place(files)
    if at_boot:
        host.must("netplan", "generate")
    else:
        gone = {port: had for port, had in given.items() if port not in before["ports"]}
        host.activate({**before["ports"], **gone})
        mtus: Any = kept["mtus"]
        host.release(gone, mtus)
    if before["files"] or before["ports"]:
        write_json(host.path(f"{HOME}/former.json"), before, 0o600)
    else:
        host.path(f"{HOME}/former.json").unlink(missing_ok=True)
    pending.unlink()
    forget_unit(host)


def main(arguments: list[str]) -> int:
    """Entry point."""
    host = Host()
    if arguments not in (["apply"], ["confirm"], ["rollback"], ["boot"]):
        sys.stderr.write((__doc__ or "").splitlines()[2].strip() + "\n")
        return 2
    held = lock_of(host)
    assert held >= 0
    try:
        if arguments == ["apply"]:
            print("\n".join(apply(host, json.load(sys.stdin))))
        elif arguments == ["confirm"]:
            confirm(host)
        else:
            rollback(host, at_boot=arguments == ["boot"])
    except (FabricError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
