"""The report, printed."""

from __future__ import annotations

from rich.console import Console

from modules.status.remarks import remarks
from modules.status.report import StatusReport
from modules.status.table import table_of, title_of

_LONGEST_LINE = 10_000


def show(report: StatusReport, *, clear: bool = False) -> None:
    """Print it. A log breaks no lines, and is as wide as it all needs. `clear`: in place of what the screen shows."""
    console = Console(highlight=False)
    width = console.width if console.is_terminal else None
    if width is None:
        console = Console(highlight=False, width=_LONGEST_LINE)
    if clear and console.is_terminal:
        console.clear()
    console.print(title_of(report), style="italic", soft_wrap=True)
    console.print(table_of(report, width))
    for text, style in remarks(report):
        console.print(text, style=style, markup=False, soft_wrap=True)
