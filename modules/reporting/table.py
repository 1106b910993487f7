"""`python -m modules.reporting.table`: what was measured on the fleet's hosts, and a line to try it.

With `--try` the line alone. Exit status 1 when any service that has a gate did not pass it, or was not measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from modules.catalog import load_catalog
from modules.fleet import Fleet, FleetError, ServicePlan, load_fleet
from modules.fleet.plan import host_plan
from modules.gating import Verdict
from modules.reporting.load import load_line
from modules.reporting.measured import ROOT, Figure, Measured, MeasuredService, load_measured
from modules.reporting.record import load_record
from modules.reporting.report import State
from modules.reporting.trial import trial_line
from modules.reporting.wording import wording_of
from modules.spec.fleet import ResolvedHost
from modules.spec.gate import Gate, Threshold
from modules.spec.workload import BenchyWorkload

# A CI's log breaks no lines; rich would take it for 80 columns wide.
LOG_WIDTH = 150
_STYLES = {Verdict.PASS: "bold green", Verdict.WARN: "bold yellow", Verdict.FAIL: "bold red"}


@dataclass(frozen=True)
class Row:
    """A gated service on a host, and what was measured of it, if anything."""

    host: ResolvedHost
    plan: ServicePlan
    gate: Gate
    measured: MeasuredService | None

    @property
    def passed(self) -> bool:
        """A warning is no pass."""
        return self.measured is not None and self.measured.verdict is Verdict.PASS


def rows_of(fleet: Fleet, measured: Measured) -> list[Row]:
    """A row for every gated service of the fleet, also where nothing was measured."""
    catalog = load_catalog()
    return [
        Row(host, plan, plan.gate, measured.services.get(f"{host.name}/{plan.name}"))
        for host in fleet.hosts.values()
        for plan in host_plan(host, catalog).services
        if plan.gate is not None
    ]


def headline(workload: BenchyWorkload) -> tuple[str, str]:
    """The two metrics that stand in the table: prompt and decode speed of the workload's first cell."""
    depth, pp, tg = workload.depth[0], workload.pp[0], workload.tg[0]
    cell = f"{f' d{depth}' if depth else ''} c{workload.concurrency[0]}"
    return f"pp{pp}{cell}", f"tg{tg}@pp{pp}{cell}"


def _speed(figure: Figure | None, metric: str, gate: Gate) -> Text:
    if figure is None:
        return Text("not measured yet")
    lines = [metric, *_asked(gate.thresholds.get(metric))]
    return Text.assemble(f"{figure.mean:.1f} ± {figure.std:.1f}", ("".join(f"\n{line}" for line in lines), "dim"))


def _asked(threshold: Threshold | None) -> list[str]:
    """What would fail a speed, in lines so short that two columns of them stand in 80; of nothing a word, too."""
    if threshold is None:
        return ["no threshold"]
    found = [] if threshold.min is None else [f"at least {threshold.min:g}"]
    for name, worse in (("last good", threshold.last_good), ("fleet's median", threshold.fleet)):
        found += [] if worse is None or worse.fail is None else [f"{name} less {100 * worse.fail:g} %"]
    return found or ["may only warn"]


def _legend(rows: list[Row]) -> str:
    """What the metrics of the table are, in words."""
    names = dict.fromkeys(name for row in rows for name in headline(row.gate.workload))
    words = ((name, wording_of(name)) for name in names)
    return "\n".join(f"{name}: {one.title.lower()}, {one.detail}" for name, one in words)


def _when(utc: str) -> str:
    return datetime.fromisoformat(utc).astimezone().strftime("%Y-%m-%d %H:%M")


def table_of(
    fleet: Fleet, rows: list[Row], failed: Collection[str] = (), states: Mapping[str, State] | None = None
) -> Table:
    """The table as people see it; it is whole on a terminal of 80 columns.

    `failed`: hosts on which this run did. `states`: how each `host/service` was just found, where it was asked.
    """
    table = Table(
        title=f"Fleet {fleet.name}: measured by llama-benchy on each host",
        caption=_legend(rows),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        leading=1,
    )
    for column in ("host", "serves"):
        table.add_column(column)
    for column in ("prompt tok/s", "decode tok/s"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict")
    for row in rows:
        prompt, decode = headline(row.gate.workload)
        found, service = row.measured, row.plan.service
        if found is None:
            serves = f"{row.plan.model.served_as}\n{service.engine}, {service.profile}"
            table.add_row(row.host.name, serves, "", "", "not measured")
            continue
        table.add_row(
            Text.assemble((row.host.name, "bold"), f"\n{found.gpu or 'no GPU'}"),
            f"{found.model}\n{found.engine}, {found.profile}\nrelease {found.release}{_gone(found)}",
            _speed(found.metrics.get(prompt), prompt, row.gate),
            _speed(found.metrics.get(decode), decode, row.gate),
            _verdict(
                found,
                row.gate,
                this_run_failed=row.host.name in failed,
                state=(states or {}).get(f"{row.host.name}/{row.plan.name}", "running"),
            ),
        )
    return table


def _gone(found: MeasuredService) -> str:
    """A release that failed may have made way, which only its host knows."""
    return ",\nwhich failed" if found.verdict is Verdict.FAIL else ""


def _verdict(found: MeasuredService, gate: Gate, *, this_run_failed: bool, state: State) -> Text:
    past = this_run_failed or state != "running"
    style = "dim" if past and found.verdict is not Verdict.FAIL else _STYLES[found.verdict]
    # What stands beside it may be long past.
    note = ("\nthis run failed", "bold red") if this_run_failed else ""
    now = (f"{state} now\n", "bold red") if state != "running" else ""
    former = ("\nby the gate of before", "yellow") if found.outdated(gate) else ""
    return Text.assemble(now, (found.verdict, style), f"\n{_when(found.measured)}", former, note)


def load_lines(fleet: Fleet, rows: list[Row], root: Path = ROOT) -> list[str]:
    """What a load of the weights takes, of every service of which that was measured."""
    loads = [(row, load_record(fleet.name, row.host.name, row.plan.name, root).load) for row in rows]
    return [
        f"{row.host.name}/{row.plan.name}: {line}"
        for row, load in loads
        if load is not None
        for line in (load_line(load), load.slow, load.advice)
        if line
    ]


def print_table(fleet: Fleet, failed: Collection[str] = (), states: Mapping[str, State] | None = None) -> None:
    """Print the table, what did not pass, and what a load takes; `failed`, `states`: see `table_of`."""
    console = _console()
    rows = rows_of(fleet, load_measured(fleet.name))
    console.print(table_of(fleet, rows, failed, states))
    for row in rows:
        for reason in row.measured.reasons if row.measured is not None else []:
            console.print(f"{row.host.name}/{row.plan.name}: {reason}", markup=False, highlight=False)
    for line in load_lines(fleet, rows):
        console.print(line, markup=False, highlight=False)


def print_trial(fleet: Fleet) -> None:
    """Print a line to try the first service that serves."""
    rows = rows_of(fleet, load_measured(fleet.name))
    served = next((row for row in rows if row.measured is not None and row.measured.verdict is not Verdict.FAIL), None)
    console = _console()
    if served is None:
        console.print("\nNothing to try yet: no service has a measurement that its gate let pass.")
    else:
        console.print("\nTry it:")
        # Not wrapped: it is to be copied.
        console.print(trial_line(served.host, served.plan), markup=False, highlight=False, soft_wrap=True)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=LOG_WIDTH)


def main(
    trial: Annotated[bool, typer.Option("--try", help="only the line to try the first service that serves")] = False,
) -> None:
    """Print what was measured on the fleet that TINDERBOX_FLEET names (default: the lab), and a line to try.

    Exit status: 0 every gated service passed; 1 one did not, or was not measured, or the fleet file was refused.
    """
    try:
        fleet = load_fleet()
    except FleetError as error:
        _console().print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error
    if not trial:
        print_table(fleet)
    print_trial(fleet)
    rows = rows_of(fleet, load_measured(fleet.name))
    raise typer.Exit(0 if rows and all(row.passed for row in rows) else 1)


if __name__ == "__main__":
    typer.run(main)
