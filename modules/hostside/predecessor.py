"""The server that ran on this host before a service of Tinderbox took its place: stopped for it, and had back.

    predecessor.py choose SERVICE < RECORD      note which server makes way for the service when that starts
    predecessor.py undo SERVICE [BY]            stop the service, over a boot, too, and start that server again
    predecessor.py list                         every note's state and what the server is called, as JSON

The note (`undo/adopted/<service>.json`, root's alone) says what stops it and what starts it again: a unit is disabled
and stopped; a container is stopped and no more started by docker, and stays; one that docker removes when it stops is
made again from what docker told of it. Nothing of it is deleted. `state`: `chosen`, `stopped`, `back`.
Each step may be done again, so that what was cut is simply begun anew.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import docker_api
    from modules.hostside.activation import BusyError
    from modules.hostside.atomic import read_json
    from modules.hostside.end_service import EndError, end
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import STATE, Ledger
    from modules.hostside.predecessor_note import BACK, CHOSEN, STOPPED, Record, note_file, noted, write
    from modules.hostside.service_unit import run
else:
    import docker_api
    from activation import BusyError
    from atomic import read_json
    from end_service import EndError, end
    from gpus_kept import gpus_kept
    from ledger import STATE, Ledger
    from predecessor_note import BACK, CHOSEN, STOPPED, Record, note_file, noted, write
    from service_unit import run

_STOP_S, _SHORT_S = 90, 2


class PredecessorError(Exception):
    """It could not be stopped, or not be started again; the text says which and why."""


def choose(service: str, record: Record, state: Path = STATE) -> None:
    """Note a server, with what its container was made of: docker forgets it where the container is removed."""
    before = noted(service, state)
    if before is not None and before.get("state") == STOPPED:
        return  # its place is taken, and what gives it back must not be lost
    if record.get("container"):
        told = json.loads(run("docker", "container", "inspect", record["container"]) or "[]")
        if not told:
            raise PredecessorError(f"docker has no container {record['container']} any more; describe the host anew")
        record["docker"] = told[0]
    if record.get("executed"):
        record["exec"] = docker_api.execution(int(record["pid"]))
    # One that only starts containers and ends is not stopped: it may take down more than the server.
    record["passing"] = [unit for unit in record["units"] if _told(unit, "Type") == "oneshot"]
    record["enabled"] = [unit for unit in record["units"] if _told(unit, "UnitFileState") == "enabled"]
    write(service, {**record, "state": CHOSEN}, state)


def make_way(service: str, state: Path = STATE) -> None:
    """Stop it, if it was chosen, and have nobody start it again. Raises `PredecessorError`: it runs on."""
    record = noted(service, state)
    if record is None or record.get("state") != CHOSEN:
        return
    for unit in record["units"]:
        with gpus_kept():
            subprocess.run(["systemctl", "disable", "--quiet", unit], check=False)
        if unit in record["passing"]:
            continue
        subprocess.run(["systemctl", "stop", unit], check=False)
        if _told(unit, "ActiveState") in {"active", "deactivating"}:
            raise PredecessorError(f"unit {unit} could not be stopped")
    container = record.get("container")
    if container is not None and _runs(container):
        if not record["docker"]["HostConfig"].get("AutoRemove"):
            subprocess.run(["docker", "update", "--restart=no", container], capture_output=True, check=False)
        # What only sleeps there heeds no signal, so the server in it is asked itself.
        given_s = _SHORT_S if record.get("executed") and _ended(int(record["pid"]), container) else _STOP_S
        done = subprocess.run(
            ["docker", "stop", "--time", str(given_s), container], capture_output=True, text=True, check=False
        )
        if done.returncode != 0 and _runs(container):
            raise PredecessorError(f"container {record['name']} could not be stopped: {done.stderr.strip()}")
        if record["docker"]["HostConfig"].get("AutoRemove"):
            _await(lambda: not _exists(container))
    write(service, {**record, "state": STOPPED}, state)


def have_back(service: str, state: Path = STATE) -> str | None:
    """Start it again, if it made way. Returns what it is called; None: there is none.

    Raises `PredecessorError`: it does not start.
    """
    record = noted(service, state)
    if record is None or record.get("state") not in {CHOSEN, STOPPED}:
        return None
    container, units = record.get("container"), record["units"]
    if container is not None:
        _rearm(record)
    for unit in units:
        if unit in record["enabled"]:
            with gpus_kept():
                subprocess.run(["systemctl", "enable", "--quiet", unit], check=False)
        if unit in record["passing"]:
            continue
        done = subprocess.run(["systemctl", "start", unit], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PredecessorError(f"unit {unit} does not start: {done.stderr.strip()}")
    if container is not None and set(units) <= set(record["passing"]):
        _start(service, record, state)
    write(service, {**record, "state": BACK}, state)
    return str(record["named"])


def regained(ledger: Ledger) -> list[str]:
    """As `have_back`, for whoever must come to an end: what it is called, or that it does not start."""
    try:
        name = have_back(ledger.service, ledger.directory.parents[1])
    except PredecessorError as error:
        return [f"(not the server that ran before: {error})"]
    return [] if name is None else [name]


def _ended(pid: int, container: str, proc: Path = Path("/proc")) -> bool:
    """Ask a process of a container to end, and wait for that. Whether it has."""

    def runs() -> bool:
        try:
            return container in (proc / str(pid) / "cgroup").read_text()
        except OSError:
            return False

    if runs():
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    return _await(lambda: not runs())


def _executes(container: str, words: list[str], proc: Path = Path("/proc")) -> bool:
    """Whether such a program runs in a container already."""
    for folder in proc.glob("[0-9]*"):
        try:
            own = (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            if own == words and container in (folder / "cgroup").read_text():
                return True
        except OSError:  # it has just ended
            continue
    return False


def _made_before(record: Record) -> str | None:
    """The container that has its name and is made of the same."""
    told = json.loads(run("docker", "container", "inspect", str(record["name"])) or "[]")
    former = record["docker"]
    same = told and all(told[0].get(part) == former.get(part) for part in ("Name", "Image", "Config"))
    return str(told[0]["Id"]) if same else None


def _await(done: Callable[[], bool]) -> bool:
    for _ in range(_STOP_S * 5):
        if done():
            return True
        time.sleep(0.2)
    return done()


def _rearm(record: Record) -> None:
    policy = record["docker"]["HostConfig"].get("RestartPolicy") or {}
    name, count = policy.get("Name") or "no", policy.get("MaximumRetryCount") or 0
    if name != "no" and _exists(record["container"]):
        word = f"{name}:{count}" if name == "on-failure" and count else name
        subprocess.run(["docker", "update", f"--restart={word}", record["container"]], capture_output=True, check=False)


def _start(service: str, record: Record, state: Path) -> None:
    container = str(record["container"])
    try:
        if not _exists(container):
            # Docker removed it when it was stopped, as it was told to when it was made. Whatever comes next, the new
            # one is it from now on: by its name there can be no other. An attempt that was cut may have made it.
            container = _made_before(record) or docker_api.made_again(record["docker"])
            record["container"] = container
            write(service, record, state)
        docker_api.start(container)
        if record.get("exec") and not _executes(container, record["exec"]["Cmd"]):
            docker_api.execute(container, record["exec"])
    except docker_api.DockerApiError as error:
        raise PredecessorError(f"container {record['name']} does not start: {error}") from error


def undo(service: str, by: str = "", state: Path = STATE) -> str:
    """Have it back in the place of the service. Returns what is to be told. Raises `PredecessorError`."""
    record = noted(service, state)
    if record is None:
        return f"service {service} has taken no server's place here"
    if record.get("state") == BACK:
        return f"{record['named']} was had back already"
    try:
        end("stop", service, by)
    except (EndError, BusyError) as error:
        raise PredecessorError(str(error)) from error
    return f"{have_back(service, state)} runs again, in the place of service {service}, which is stopped and disabled"


def _told(unit: str, what: str) -> str:
    return (run("systemctl", "show", "--property", what, "--value", unit) or "").strip()


def _runs(container: str) -> bool:
    return (run("docker", "container", "inspect", "--format", "{{.State.Running}}", container) or "").strip() == "true"


def _exists(container: str) -> bool:
    return run("docker", "container", "inspect", "--format", "{{.Id}}", container) is not None


def main(arguments: list[str]) -> int:
    """Entry point."""
    if arguments == ["list"]:
        told = {path.stem: read_json(path) or {} for path in sorted(note_file("x").parent.glob("*.json"))}
        print(json.dumps({name: {key: one.get(key, "") for key in ("state", "named")} for name, one in told.items()}))
        return 0
    if len(arguments) not in {2, 3} or arguments[0] not in {"choose", "undo"}:
        print("predecessor.py choose|undo SERVICE [BY], or list", file=sys.stderr)
        return 2
    action, service, *by = arguments
    try:
        if action == "choose":
            choose(service, json.load(sys.stdin))
        else:
            print(undo(service, "".join(by)))
    except (PredecessorError, docker_api.DockerApiError) as error:
        print(str(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
