"""What a converged re-run costs the controller with many hosts: by hosts that are not real and answer as a real one.

    python -m benchmarks.scale [--hosts 100,300,1000] [--delay 0.4] [--parallel 0] [--lab NAME] [--answers FILE]

The answers are those of a converged lab host (`--lab`: the lab's name; its fleet file is converge.yaml, as
`benchmarks.converge_lab` leaves it, or fleet.yaml), or were kept by an earlier run. All that Tinderbox and pyinfra do
is real but for SSH: see docs/scale.md for what that adds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from modules.lab.layout import ROOT, Layout

_TOTAL = re.compile(r"^\s*Grand total\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Scaled:
    """A run over so many hosts. `cpu`, `wall`: seconds; `memory`: MiB at most; `operations`: with no change."""

    hosts: int
    wall: float
    cpu: float
    memory: float
    operations: int


def main(
    hosts: Annotated[str, typer.Option(help="how many, separated by commas")] = "1,16,100,300,1000",
    delay: Annotated[float, typer.Option(help="seconds that a host takes for an answer")] = 0.4,
    parallel: Annotated[int, typer.Option(help="hosts at once; 0: as pyinfra does by itself")] = 0,
    lab: Annotated[str, typer.Option(help="name of the lab whose first host answers")] = "lab",
    answers: Annotated[Path | None, typer.Option(help="answers that were kept")] = None,
) -> None:
    """Simulate."""
    layout = Layout.named(lab)
    fleet = next(path for path in (layout.folder / "converge.yaml", layout.fleet) if path.exists())
    kept = answers or record(fleet, layout.folder / "answers.json")
    table = Table("hosts", "wall s", "CPU s", "CPU s a host", "memory MiB", "operations without a change")
    for count in map(int, hosts.split(",")):
        run = simulate(fleet, kept, count, delay, parallel)
        table.add_row(
            str(count), f"{run.wall:.1f}", f"{run.cpu:.1f}", f"{run.cpu / count:.3f}", f"{run.memory:.0f}",
            str(run.operations),
        )  # fmt: skip
    Console().print(table)


def record(fleet: Path, into: Path) -> Path:
    """Keep what the first host of a converged fleet answers."""
    command = [sys.executable, "-m", "benchmarks.recorded_pyinfra", "--yes", "--limit", "spark-1"]
    subprocess.run(
        [*command, "inventory.py", "deploys/spark.py"], cwd=ROOT, check=True, capture_output=True,
        env=os.environ | {"TINDERBOX_FLEET": str(fleet), "ANSWERS": str(into), "PYINFRA_PROGRESS": "off"},
    )  # fmt: skip
    return into


def simulate(fleet: Path, answers: Path, count: int, delay: float, parallel: int = 0) -> Scaled:
    """Run deploys/spark.py over `count` hosts that are not real. Raises SystemExit where one of them fails."""
    told = {"TINDERBOX_FLEET": str(fleet), "SCALE_ANSWERS": str(answers), "SCALE_HOSTS": str(count)}
    told |= {"SCALE_DELAY": str(delay), "PYINFRA_PROGRESS": "off"}
    command = [str(Path(sys.executable).with_name("pyinfra")), "--yes"]
    command += ["--parallel", str(parallel)] if parallel else []
    started = time.perf_counter()
    process = subprocess.Popen(
        [*command, "benchmarks/scale_inventory.py", "deploys/spark.py"], cwd=ROOT, text=True,
        env=os.environ | told, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    total = _TOTAL.search(said)
    if process.returncode != 0 or total is None or total[2] != "-" or total[3] != "-":
        sys.exit(f"{count} hosts: exit status {process.returncode}\n{said[-3000:]}")
    return Scaled(count, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, int(total[4]))


if __name__ == "__main__":
    typer.run(main)
