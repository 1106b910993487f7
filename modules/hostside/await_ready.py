"""Wait until a service answers with generated text; the unit is active only after that.

`/health` or a model list prove nothing: engines answer them with a dead scheduler behind, and broken kernels return
empty messages with status 200. So this asks for a completion and looks at what comes back, then at the backend that the
log names. It gives up at once when waiting is hopeless: the server has gone, somebody else holds the port, the key is
refused, the log shows what must not be there.

Run by systemd as ExecStartPost: $MAINPID is the container's client, $INVOCATION_ID names this start in the journal.
Meanwhile `load_guard.py`, its child, watches the memory.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import load_guard
    from modules.hostside.ask_model import GENERATE, TASKS
    from modules.hostside.ask_server import (
        Endpoint,
        Hopeless,
        NotReady,
        check_names,
        generate,
        read_secret,
    )
    from modules.hostside.atomic import read_json
    from modules.hostside.load_stops import note_load_stop
    from modules.hostside.service_unit import journal, unit_name
else:
    import load_guard
    from ask_model import GENERATE, TASKS
    from ask_server import Endpoint, Hopeless, NotReady, check_names, generate, read_secret
    from atomic import read_json
    from load_stops import note_load_stop
    from service_unit import journal, unit_name

PAUSE_S = 1.0
REQUEST_S = 600.0  # the first request may compile kernels for minutes
EMPTY_REPLIES = 3  # gpt-oss's parser loses a reply now and then; broken kernels lose every one
MARK = "await-ready: "
# The guard looks ten times a second; one that never found the engine does not see its end.
_GUARD_S = 2.0


def server_log(unit: str) -> list[str]:
    """What this start of the unit has logged so far, without our own lines."""
    lines = journal(unit, os.environ.get("INVOCATION_ID"), lines=None)
    return [line for line in lines if not line.startswith((MARK, load_guard.MARK))]


def refused_line(log: list[str], refused: list[str]) -> str | None:
    """The first line that matches a refused pattern."""
    return next((line for line in log if any(re.search(pattern, line) for pattern in refused)), None)


def missing_patterns(log: list[str], wanted: list[str]) -> list[str]:
    """The wanted patterns that no line matches."""
    return [pattern for pattern in wanted if not any(re.search(pattern, line) for line in log)]


def server_gone() -> bool:
    """Whether the container's client, which ends with the container, has ended."""
    pid = os.environ.get("MAINPID")
    return bool(pid) and not Path(f"/proc/{pid}").exists()


def say(message: str) -> None:
    """One line for the journal."""
    sys.stdout.write(f"{MARK}{message}\n")
    sys.stdout.flush()


def guarded(service: str, memory: Path) -> subprocess.Popen[bytes]:
    """Start the load guard, which ends with this program."""
    program = str(Path(__file__).with_name("load_guard.py"))
    return subprocess.Popen([
        *(sys.executable, program, f"tinderbox-{service}", str(memory), "--parent", str(os.getpid())),
    ])  # fmt: skip


def why_gone(guard: subprocess.Popen[bytes] | None, stopped: Callable[[], None] = lambda: None) -> str:
    """Why the server has ended; the guard sees the end, too, and then ends itself. `stopped`: called if it did that."""
    try:
        by_guard = guard is not None and guard.wait(timeout=_GUARD_S) == load_guard.STOPPED
    except subprocess.TimeoutExpired:
        by_guard = False
    if not by_guard:
        return "the server has ended"
    # What is only counted must not hide why the start has failed.
    with suppress(OSError):
        stopped()
    return "the load guard stopped it, since memory ran out while it loaded"


def why_ended_here(service: str, otherwise: str) -> str:
    """The same of a service that spans hosts: another host's part may have ended first (pair_agent.py)."""
    known = read_json(Path(f"/run/tinderbox/{service}.pair.json")) or {}
    mine = known.get("why") and known.get("invocation") == os.environ.get("INVOCATION_ID")
    return str(known["why"]) if mine else otherwise


def wait(
    endpoint: Endpoint,
    unit: str,
    deadline: float,
    refused: list[str],
    gone: Callable[[], str] = lambda: "the server has ended",
    *,
    task: str = GENERATE,
) -> str:
    """Return the first reply that has text. `gone`: why the server has ended, once it has. Raises `Hopeless`."""
    reason, empty = "nothing answered", 0
    while time.monotonic() < deadline:
        if server_gone():
            raise Hopeless(gone())
        line = refused_line(server_log(unit), refused) if refused else None
        if line is not None:
            raise Hopeless(f"the log has a line that must not be there: {line.strip()}")
        try:
            check_names(*endpoint.ask("GET", "/v1/models"), model=endpoint.model)
            text = generate(endpoint, min(REQUEST_S, max(1.0, deadline - time.monotonic())), task)
        except NotReady as not_yet:
            reason = str(not_yet)
        else:
            if text:
                return text
            empty += 1
            reason = "the server answers, but with empty content and reasoning"
            if empty >= EMPTY_REPLIES:
                raise Hopeless(f"{reason} ({empty} times): wrong kernels or a missing parser")
        time.sleep(PAUSE_S)
    raise Hopeless(f"not ready in time: {reason}")


def main(arguments: list[str]) -> int:
    """0 when ready; 1, with the reason, when not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--timeout", type=float, required=True, help="seconds")
    parser.add_argument("--task", choices=TASKS, default=GENERATE, help="what the model is asked for")
    parser.add_argument("--secret-file", type=Path)
    parser.add_argument("--key-variable")
    parser.add_argument("--wanted-log", action="append", default=[])
    parser.add_argument("--refused-log", action="append", default=[])
    parser.add_argument("--memory", type=Path, help="the service's memory file: the load is guarded by it")
    options = parser.parse_args(arguments)
    unit = unit_name(options.service)
    started = time.monotonic()
    guard = guarded(options.service, options.memory) if options.memory else None
    try:
        key = read_secret(options.secret_file, options.key_variable) if options.secret_file else None
        endpoint = Endpoint(options.url, options.model, key)
        ends = started + options.timeout
        text = wait(
            endpoint,
            unit,
            ends,
            options.refused_log,
            lambda: why_ended_here(options.service, why_gone(guard, lambda: note_load_stop(options.service))),
            task=options.task,
        )
        log = server_log(unit)
        line = refused_line(log, options.refused_log)
        if line is not None:
            raise Hopeless(f"the log has a line that must not be there: {line.strip()}")
        missing = missing_patterns(log, options.wanted_log)
        if missing:
            raise Hopeless(f"the server answers, but its log never said: {'; '.join(missing)}")
    except Hopeless as hopeless:
        say(f"not ready after {time.monotonic() - started:.0f} s: {hopeless}")
        return 1
    finally:
        if guard is not None:
            guard.terminate()
    say(f"ready after {time.monotonic() - started:.0f} s: {text[:80]!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
