"""Run the benchmarks, print a table, write `benchmarks/results.json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.converge_noop import converge_noop
from benchmarks.gate_client import gate_client
from benchmarks.image_fanout import image_fanout
from benchmarks.result import Result
from benchmarks.status_16 import status_16
from benchmarks.weights_fanout import weights_fanout
from benchmarks.weights_verify import weights_verify

RESULTS = Path(__file__).with_name("results.json")
# A log breaks no lines; rich would take it for 80 columns wide.
_LOG_WIDTH = 160
BENCHMARKS: dict[str, Callable[[], Result]] = {
    "converge_noop_1": partial(converge_noop, 1),
    "converge_noop_4": partial(converge_noop, 4),
    "converge_noop_16": partial(converge_noop, 16),
    "weights_fanout_8": partial(weights_fanout, 8),
    "weights_fanout_16": partial(weights_fanout, 16),
    "weights_verify": weights_verify,
    "image_fanout_4": image_fanout,
    "gate_client_1024": gate_client,
    "status_16": status_16,
}


def main(only: Annotated[str | None, typer.Option(help="name of one benchmark")] = None) -> None:
    """Measure; results of benchmarks that are not run again stay in the file."""
    if only is not None and only not in BENCHMARKS:
        raise typer.BadParameter(f"no benchmark {only!r}; there are: {', '.join(BENCHMARKS)}")
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    table = Table("benchmark", "ours", "peer", "ratio", "unit", "details", "workload")
    for name in [only] if only is not None else BENCHMARKS:
        result = BENCHMARKS[name]()
        stored[name] = asdict(result)
        details = "\n".join(f"{key} {value:g}" for key, value in result.details.items())
        figures = (f"{figure:.3g}" for figure in (result.ours, result.peer, result.ratio))
        table.add_row(name, *figures, result.unit, details, result.workload)
    fresh = RESULTS.with_suffix(".json.new")
    fresh.write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n")
    fresh.replace(RESULTS)
    console = Console()
    (console if console.is_terminal else Console(width=_LOG_WIDTH)).print(table)


if __name__ == "__main__":
    typer.run(main)
