"""A re-run on converged lab hosts, by Tinderbox and by an equivalent Ansible playbook, in turns."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.converge_lab import CHANGED_FILE, ConvergeLab, NotConvergedError, converge_lab
from benchmarks.cost import Cost
from benchmarks.result import Result

# Of each tool; the playbook takes minutes on sixteen hosts.
RUNS = {1: 5, 4: 3}
_FEW_RUNS = 2


@dataclass
class Costs:
    """Of one tool's runs. `hosts`: CPU seconds of all hosts, where the machine tells them."""

    runs: list[Cost] = field(default_factory=list)
    hosts: list[float] = field(default_factory=list)

    @property
    def wall(self) -> float:
        """Seconds, median."""
        return statistics.median(one.wall for one in self.runs)

    @property
    def cpu(self) -> float:
        """Of the controller, median."""
        return statistics.median(one.cpu for one in self.runs)


def converge_noop(count: int) -> Result:
    """Wall time of the playbook on `count` converged hosts over that of `deploys/spark.py` on the same.

    Runs alternate, so that both see the same machine, and every one is checked: it changes nothing. Both have been run
    on the hosts right before: caches are warm, Ansible has its facts cached and its connections open.
    """
    with converge_lab(count) as lab:
        ours, theirs, round_trips = Costs(), Costs(), 0
        for _ in range(RUNS.get(count, _FEW_RUNS)):
            run = _measured(lab, ours, lambda: _of_ours(lab, expected=0))
            round_trips = run
            _measured(lab, theirs, lambda: _of_theirs(lab, expected=0))
        lab.edit()
        ours_edited, theirs_edited = Costs(), Costs()
        _measured(lab, ours_edited, lambda: _of_ours(lab, expected=count))
        lab.edit()
        _measured(lab, theirs_edited, lambda: _of_theirs(lab, expected=count))
        asked = lab.playbook.round_trips(lab.hosts[:1])
        first_ours, first_theirs = lab.first
    return Result(
        ours=ours.wall,
        peer=theirs.wall,
        ratio=theirs.wall / ours.wall,
        unit="s",
        workload=(
            f"re-run on {count} converged lab host{'s' * (count > 1)} that share this machine's {os.cpu_count()} cores "
            f"with the controller, in turns, median of {len(ours.runs)}; peer: benchmarks/ansible, which brings the "
            "hosts to the same bytes. Each host serves by the fake engine of tests/lab in a tiny image. Changed file: "
            f"{CHANGED_FILE} on every host. First converge: one fresh host for each tool; ours has the gate in it"
        ),
        commands=(
            "pyinfra inventory.py deploys/spark.py -y",
            f"ansible-playbook --forks {count} benchmarks/ansible/site.yml",
        ),
        details={
            "controller CPU s a host": round(ours.cpu / count, 3),
            "controller CPU s a host, Ansible": round(theirs.cpu / count, 3),
            "round trips a host": round_trips / count,
            "round trips a host, Ansible": asked,
            **_of_hosts("CPU s on each host", ours, count),
            **_of_hosts("CPU s on each host, Ansible", theirs, count),
            "one changed file s": round(ours_edited.wall, 2),
            "one changed file s, Ansible": round(theirs_edited.wall, 2),
            "one changed file ratio": round(theirs_edited.wall / ours_edited.wall, 2),
            "first converge of one host s": round(first_ours.cost.wall, 1),
            "of these, gate s": round(first_ours.stages.get("Gate", 0.0), 1),
            "first converge of one host s, Ansible": round(first_theirs.wall, 1),
            "load of the machine": round(os.getloadavg()[2], 1),
        },
    )


def _of_ours(lab: ConvergeLab, expected: int) -> tuple[Cost, int]:
    run = lab.ours()
    _check("deploys/spark.py", run.changed, expected)
    return run.cost, run.round_trips


def _of_theirs(lab: ConvergeLab, expected: int) -> tuple[Cost, int]:
    cost, changed = lab.theirs()
    _check("the playbook", changed, expected)
    return cost, 0


def _check(what: str, changed: int, expected: int) -> None:
    if changed != expected:
        raise NotConvergedError(f"{what} made {changed} changes where {expected} were to be made")


def _measured(lab: ConvergeLab, costs: Costs, run: Callable[[], tuple[Cost, int]]) -> int:
    before = lab.cpu()
    cost, round_trips = run()
    after = lab.cpu()
    costs.runs.append(cost)
    if before is not None and after is not None:
        costs.hosts.append(after - before)
    return round_trips


def _of_hosts(name: str, costs: Costs, count: int) -> dict[str, float]:
    return {name: round(statistics.median(costs.hosts) / count, 2)} if costs.hosts else {}
