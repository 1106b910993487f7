"""A memory plan as people read it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from modules.memory.advice import Suggestion
from modules.memory.plan import MemoryPlan
from modules.memory.sizes import MIB, gib

_LOG_WIDTH = 110


def table(plan: MemoryPlan, title: str) -> Table:
    """Part, size, and how it is known."""
    shown = Table(title=title, title_justify="left")
    shown.add_column("part")
    shown.add_column("size", justify="right")
    shown.add_column("known by")
    shown.add_column("", overflow="fold")
    for part in (plan.weights, plan.cache, plan.graphs):
        note = capacity_note(plan) if part is plan.cache else part.note
        shown.add_row(part.name, gib(part.size), part.source, note)
    shown.add_row("served from", gib(plan.serving), "", "", style="bold", end_section=True)
    for part in plan.others:
        shown.add_row(part.name, gib(part.size), part.source, part.note)
    shown.add_row("needed", gib(plan.total), "", "", style="bold", end_section=True)
    verdict = f"{gib(plan.left)} left" if plan.left >= 0 else f"{gib(-plan.left)} short"
    shown.add_row("MemTotal", gib(plan.memory), "", verdict, style="bold" if plan.fits else "bold red")
    return shown


def table_text(plan: MemoryPlan, title: str) -> str:
    """The table without colours, for logs."""
    console = Console(width=_LOG_WIDTH, no_color=True, highlight=False)
    with console.capture() as captured:
        console.print(table(plan, title))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def capacity_note(plan: MemoryPlan) -> str:
    """How many sequences the cache holds, in words."""
    held = plan.capacity
    if held is None:
        return "how many sequences it holds is unknown"
    if math.isinf(held.sequences):
        return "no layer caches anything"
    # Of one sequence, and not of one token: layers with a window do not grow with it.
    return f"{held.sequences:.2f} sequences of {plan.context:,} tokens, {held.sequence / MIB:,.1f} MiB each"


def refusal(plan: MemoryPlan, suggestions: Sequence[Suggestion]) -> list[str]:
    """Lines that say why the plan can not be and what would; empty for one that can."""
    if plan.fits:
        return []
    lines = [problem.text for problem in plan.problems]
    if not suggestions:
        return [*lines, "no setting makes it fit: use a smaller model, or move a service to another host"]
    lines.append("any one of these would fit:" if len(suggestions) > 1 else "this would fit:")
    for suggestion in suggestions:
        left = f"{gib(suggestion.plan.left)} left"
        lines.append(f"    {suggestion.change}    ({capacity_note(suggestion.plan)}; {left})")
    return lines
