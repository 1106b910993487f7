"""Long work in a transient systemd unit, so that it outlives the SSH session that asked for it.

    job.py start NAME KEY --title TEXT --timeout SECONDS -- COMMAND...   start it, or attach where it already runs
    job.py status [--wait SECONDS] NAME KEY                              how it stands, or how it ended while waiting
    job.py list                                                          every job that this host remembers

Each prints JSON. `exec` and `finish` are called by the unit itself.

A job's directory holds `log`, `status.json`, what the program reports (`progress.json`) and what it found
(`result.json`). A job whose status says that it runs while its unit does not is lost: the host was restarted.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.job_status import alive, describe, unit_of, wait_for
else:
    from atomic import read_json, write_json
    from job_status import alive, describe, unit_of, wait_for

JOBS = Path("/var/lib/tinderbox/jobs")
NETWORK = "/etc/tinderbox/network.env"
# In a job's directory: commands that its program would have run at its end, for the case that it does not come to it.
AFTERWARDS = "afterwards.json"
_WRITES = 10
_NAME = re.compile(r"^[a-z0-9][a-z0-9.-]*$")


def identity(name: str, key: str) -> str:
    """What a job's unit and directory are called."""
    return f"{name}-{key}"


def unit_arguments(job: str, directory: Path, title: str, timeout_s: int) -> list[str]:
    """The `systemd-run` command. The program's own words go by a file: systemd would expand `$` and `%` in them."""
    python, this = sys.executable or "/usr/bin/python3", str(Path(__file__).resolve())
    properties = {
        "Type": "exec",
        "RuntimeMaxSec": str(timeout_s),
        "TimeoutStopSec": "30",
        "EnvironmentFile": f"-{NETWORK}",
        "StandardOutput": f"append:{directory}/log",
        "StandardError": f"append:{directory}/log",
        # The end is written down by systemd's own account of it, also when the program was killed.
        "ExecStopPost": f"{python} {this} finish {directory}",
        # When memory runs short, a build may die, the server that is running may not.
        "OOMScoreAdjust": "500",
    }
    words = ["systemd-run", "--quiet", "--collect", f"--unit={unit_of(job)}", f"--description=Tinderbox: {title}"]
    words += [f"--property={name}={value}" for name, value in properties.items()]
    words += ["--setenv=HOME=/root", "--setenv=PYTHONUNBUFFERED=1", f"--setenv=TINDERBOX_JOB_DIR={directory}"]
    return [*words, python, this, "exec", str(directory)]


def ending(environment: dict[str, str]) -> dict[str, object]:
    """The final state, from what systemd tells an `ExecStopPost=` command (systemd.exec(5), $SERVICE_RESULT)."""
    cause = environment.get("SERVICE_RESULT", "unknown")
    status = environment.get("EXIT_STATUS", "")
    exit_code = int(status) if status.isdigit() else None
    if cause == "success" and exit_code not in {None, 0}:
        cause = "exit-code"
    if environment.get("EXIT_CODE") in {"killed", "dumped"} and cause in {"success", "signal"}:
        cause = f"killed by SIG{status}"
    return {"state": "succeeded" if cause == "success" else "failed", "cause": cause, "exit_code": exit_code}


@contextmanager
def _alone() -> Iterator[None]:
    """One `start` at a time: of two controllers, the second finds the first one's job."""
    JOBS.mkdir(parents=True, exist_ok=True)
    with (JOBS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def start(job: str, title: str, timeout_s: int, command: list[str]) -> int:
    """Start the job unless it runs."""
    directory = JOBS / job
    with _alone():
        if not alive(job):
            _renew(directory)
            write_json(directory / "command.json", {"command": command})
            write_json(directory / "status.json", {"state": "running", "title": title, "started": time.time()})
            started = subprocess.run(
                unit_arguments(job, directory, title, timeout_s), capture_output=True, text=True, check=False
            )
            if started.returncode != 0:
                (directory / "status.json").unlink(missing_ok=True)
                print(f"systemd-run could not start {unit_of(job)}: {started.stderr.strip()}", file=sys.stderr)
                return 1
    print(json.dumps(describe(directory)))
    return 0


def _renew(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    catch_up(directory)
    for name in ("status.json", "progress.json", "result.json"):
        (directory / name).unlink(missing_ok=True)
    if (directory / "log").exists():
        (directory / "log").replace(directory / "log.previous")


def execute(directory: Path) -> None:
    """Become the job's program."""
    document = read_json(directory / "command.json") or {}
    command = document.get("command")
    if not isinstance(command, list):
        sys.exit(f"{directory}/command.json holds no command")
    os.execvp(command[0], command)  # noqa: S606


def catch_up(directory: Path) -> None:
    """Do what the job's program has left undone."""
    commands = (read_json(directory / AFTERWARDS) or {}).get("commands")
    for command in commands if isinstance(commands, list) else []:
        print(f"the program was ended before it came to this: {' '.join(command)}", file=sys.stderr)
        subprocess.run(command, stdout=sys.stderr, check=False)
    (directory / AFTERWARDS).unlink(missing_ok=True)


def finish(directory: Path) -> None:
    """Write down how the job ended; one that falls to the host's own end is lost, not failed."""
    if not _host_ends():
        catch_up(directory)
    status = read_json(directory / "status.json") or {"started": time.time()}
    end = {"state": "lost"} if _host_ends() else ending(dict(os.environ))
    for left in reversed(range(_WRITES)):
        try:
            write_json(directory / "status.json", status | end | {"ended": time.time()})
        except OSError:
            # What filled the disk may be cleared away by now: docker drops what a failed step has written.
            if not left:
                raise
            time.sleep(1)
        else:
            return


def _host_ends() -> bool:
    shown = subprocess.run(["systemctl", "is-system-running"], capture_output=True, text=True, check=False)
    return shown.stdout.strip() == "stopping"


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("start", "status"):
        named = verbs.add_parser(verb)
        named.add_argument("name")
        named.add_argument("key")
        if verb == "start":
            named.add_argument("--title", required=True)
            named.add_argument("--timeout", type=int, required=True)
            named.add_argument("command", nargs="+")
        else:
            named.add_argument("--wait", type=float, default=0, help="seconds")
    verbs.add_parser("list")
    for verb in ("exec", "finish"):
        verbs.add_parser(verb).add_argument("directory", type=Path)
    arguments = parser.parse_args()
    if arguments.verb == "list":
        print(json.dumps([describe(path.parent) for path in sorted(JOBS.glob("*/status.json"))]))
        return 0
    if arguments.verb == "exec":
        execute(arguments.directory)
    if arguments.verb == "finish":
        finish(arguments.directory)
        return 0
    for part in (arguments.name, arguments.key):
        if not _NAME.match(part):
            parser.error(f"{part!r}: a job's name and key are lower-case letters, digits, dots and hyphens")
    job = identity(arguments.name, arguments.key)
    if arguments.verb == "start":
        return start(job, arguments.title, arguments.timeout, arguments.command)
    wait_for(JOBS / job, arguments.wait)
    print(json.dumps(describe(JOBS / job)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
