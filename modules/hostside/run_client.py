"""Measure a service from the controller: the workloads that `run_gate.py` else runs beside it, over a forwarded port.

Runs on the controller, in a process group of its own. Standard input: a line with the API key as VARIABLE=VALUE, or an
empty one; where it ends, whoever started this is gone, and all of it ends. Host, GPU and engine are sampled on the host
by the job that waits for these figures.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import write_json
    from modules.hostside.forward import ForwardError, forwarded
    from modules.hostside.gate_benchy import refuse
    from modules.hostside.gate_kinds import left_of, measured
    from modules.hostside.progress import Progress
else:
    from atomic import write_json
    from forward import ForwardError, forwarded
    from gate_benchy import refuse
    from gate_kinds import left_of, measured
    from progress import Progress


def first_line() -> bytes:
    """Of standard input, without its end. Nothing beyond it is read."""
    line = b""
    while (byte := os.read(0, 1)) not in {b"", b"\n"}:
        line += byte
    return line


def end_with_parent() -> None:
    """End all of this group when standard input does."""
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def in_memory(line: bytes) -> str:
    """A path at which this user's processes find it. It is on no disk, and goes with this process."""
    descriptor = os.memfd_create("key")
    os.write(descriptor, line)
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def all_measured(options: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Every workload that was asked for, in their order, up to the first with a fault."""
    deadline = time.monotonic() + options.budget
    parts: dict[str, Any] = {}
    for kind in options.measure:
        parts[kind] = measured(kind, options, left_of(options, deadline, kind), progress)
        if parts[kind]["faults"]:
            break
    return parts


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "served-as"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--forward", type=json.loads, required=True, help="the program that forwards {port}, as JSON")
    parser.add_argument("--gate", type=json.loads, required=True, help="workload → its settings, as JSON")
    parser.add_argument("--measure", type=json.loads, required=True, help="workload → runs, in this order, as JSON")
    parser.add_argument("--tokenizer", type=Path, required=True, help="directory with the model's tokenizer.json")
    parser.add_argument("--tools", type=Path, required=True, help="directory with llama-benchy")
    parser.add_argument("--budget", type=float, required=True, help="seconds for all workloads")
    parser.add_argument("--key-variable")
    parser.add_argument("--into", type=Path, required=True, help="file for what came out")
    return parser.parse_args(arguments)


def main() -> int:
    """0 when there is a result, also where the server misbehaved."""
    options, key = parsed(sys.argv[1:]), first_line()
    threading.Thread(target=end_with_parent, daemon=True).start()
    options.secret_file = in_memory(key) if key else None
    try:
        with forwarded(options.forward) as options.url:
            write_json(options.into, all_measured(options, Progress()), 0o600)
    except ForwardError as error:
        raise refuse(str(error)) from None
    return 0


if __name__ == "__main__":
    sys.exit(main())
