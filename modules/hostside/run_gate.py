"""Measure a service from its client's side, and keep what came out with all that judging it needs.

Runs as a job. Host, GPU and engine are sampled once a second meanwhile. The result lands in one step: also when the
server misbehaved (`faults`), since that is a result, but not when something else kept it from being measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import gate_faults
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.benchy import given_key
    from modules.hostside.cold_start import run_cold_start
    from modules.hostside.drain_lease import StayDrained
    from modules.hostside.drain_mark import Mark
    from modules.hostside.gate_benchy import refuse
    from modules.hostside.gate_delivery import Delivery
    from modules.hostside.gate_faults import fault
    from modules.hostside.gate_kinds import COLD_START, left_of, measured
    from modules.hostside.gate_result import document, set_aside
    from modules.hostside.gate_sampling import Sampling, sampler
    from modules.hostside.ledger import STATE, Ledger, now
    from modules.hostside.progress import Progress
    from modules.hostside.service_unit import READY, UNDERWAY, start_outcome, unit_name, unit_state
else:
    import gate_faults
    from atomic import read_json, write_json
    from benchy import given_key
    from cold_start import run_cold_start
    from drain_lease import StayDrained
    from drain_mark import Mark
    from gate_benchy import refuse
    from gate_delivery import Delivery
    from gate_faults import fault
    from gate_kinds import COLD_START, left_of, measured
    from gate_result import document, set_aside
    from gate_sampling import Sampling, sampler
    from ledger import STATE, Ledger, now
    from progress import Progress
    from service_unit import READY, UNDERWAY, start_outcome, unit_name, unit_state

PAUSE_S = 1.0
# A container that has died is seen by systemd a moment later.
SETTLE_S = 2.0
# For the controller's way to the service, and for its figures' way back.
LATE_S = 90.0


def wait_until_ready(options: argparse.Namespace, progress: Progress) -> dict[str, str]:
    """The unit of the running start, once the release serves."""
    deadline = time.monotonic() + options.wait
    name = unit_name(options.service)
    while True:
        current = Ledger(options.service, options.state).linked("current")
        if current != options.release:
            raise refuse(f"the host's current release is {current}, not {options.release}")
        unit = unit_state(name)
        outcome = start_outcome(unit, int(unit.get("NRestarts") or 0))
        if outcome == READY:
            return unit
        if outcome != UNDERWAY or time.monotonic() > deadline:
            raise refuse(f"{name} is {unit.get('ActiveState')} ({unit.get('Result')})")
        progress.report("waiting for the server")
        time.sleep(PAUSE_S)


def died(options: argparse.Namespace, unit: dict[str, str], kind: str) -> list[dict[str, str]]:
    """The fault of a server that has ended since the beginning; refuses where somebody restarted it."""
    now_ = unit_state(unit_name(options.service))
    if now_.get("InvocationID") == unit["InvocationID"] and now_.get("ActiveState") == "active":
        return []
    restarts = int(now_.get("NRestarts") or 0) - int(unit.get("NRestarts") or 0)
    if now_.get("ActiveState") == "active" and restarts <= 0:
        raise refuse("the server was restarted while it was measured")
    told = f"the server ended while it was measured ({now_.get('ActiveState')}, {now_.get('Result')})"
    return [fault(gate_faults.DIED, kind, told)]


def all_measured(options: argparse.Namespace, unit: dict[str, str], progress: Progress) -> dict[str, Any]:
    """Every workload that was asked for, in the order in which they were: the same for every measurement."""
    deadline = time.monotonic() + options.budget
    parts: dict[str, Any] = {}
    for kind in options.measure:
        if kind == COLD_START:
            part = run_cold_start(unit_name(options.service), unit["InvocationID"])
        elif options.client:
            break
        else:
            part = measured(kind, options, left_of(options, deadline, kind), progress)
        parts[kind] = seen_from_unit(kind, part, options, unit)
        if parts[kind]["faults"]:
            break
    return parts


def seen_from_unit(
    kind: str, part: dict[str, Any], options: argparse.Namespace, unit: dict[str, str]
) -> dict[str, Any]:
    """The same, but for its faults: a server that is gone is the cause of whatever else failed."""
    if part["faults"]:
        time.sleep(SETTLE_S)
    return {**part, "faults": died(options, unit, kind) or part["faults"]}


def from_controller(options: argparse.Namespace, unit: dict[str, str], progress: Progress) -> dict[str, Any]:
    """The workloads that the controller runs, once they have come."""
    if not options.client or not set(options.measure) - {COLD_START}:
        return {}
    with Delivery(options.service, options.client, options.state) as delivery:
        parts = delivery.awaited(time.monotonic() + options.budget + LATE_S, progress)
    return {kind: seen_from_unit(kind, part, options, unit) for kind, part in parts.items()}


def former_result(path: Path, options: argparse.Namespace, unit: dict[str, str]) -> dict[str, Any] | None:
    """The result that more runs are added to."""
    if not options.append:
        return None
    former = read_json(path)
    if former is None or former.get("workload_id") != options.workload_id:
        raise refuse(f"{path} holds no result that could be added to")
    if former.get("invocation") != unit["InvocationID"]:
        raise refuse("the server was restarted since the first runs; the next run measures all anew")
    return dict(former)


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("service", "release", "url", "model", "served-as", "workload-id"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--gate", type=json.loads, required=True, help="workload → its settings, as JSON")
    parser.add_argument("--measure", type=json.loads, required=True, help="workload → runs, in this order, as JSON")
    parser.add_argument("--append", action="store_true", help="add to the runs that there are")
    parser.add_argument("--tokenizer", type=Path, required=True, help="directory with the model's tokenizer.json")
    parser.add_argument("--client", default="", help="token of the controller's client, where that one measures")
    parser.add_argument("--container", default="", help="the engine's, for workloads that run in it")
    parser.add_argument("--model-path", default="", help="the model in the container")
    parser.add_argument("--wait", type=float, default=60.0, help="seconds for a start that is under way")
    parser.add_argument("--budget", type=float, default=3600.0, help="seconds for all workloads")
    parser.add_argument("--secret-file")
    parser.add_argument("--key-variable")
    parser.add_argument("--state", type=Path, default=STATE, help="where ledger and results lie")
    parser.add_argument("--tools", type=Path, default=STATE / "tools" / "current" / "bin")
    parser.add_argument("--datasets", type=Path, default=STATE / "datasets")
    options = parser.parse_args(arguments)
    options.began = time.monotonic()
    return options


def main(take: Callable[[str, str | None], Any] = sampler) -> int:
    """0 when there is a result."""
    options, progress = parsed(sys.argv[1:]), Progress()
    started, unit = now(), wait_until_ready(options, progress)
    path = options.state / "gates" / options.service / f"{options.release}.json"
    former = former_result(path, options, unit)
    with Sampling(take(options.url, given_key(options))) as sampling:
        with StayDrained(Mark(options.service)):
            parts = all_measured(options, unit, progress)
        # While the controller measures, it is for that one to say.
        parts |= from_controller(options, unit, progress)
    path.parent.mkdir(parents=True, exist_ok=True)
    if former is None:
        set_aside(path)
    new = {"invocation": unit["InvocationID"], "started": started, "parts": parts, "samples": sampling.series()}
    result = document(options, new, former)
    write_json(path, result)
    for one in result["faults"]:
        print(f"fault in {one['workload']}: {one['kind']}: {one['told']}")
    print(f"measured; result in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
