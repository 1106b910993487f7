"""Report → page."""

from __future__ import annotations

import functools
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from modules.reporting.asked import asked, let_pass
from modules.reporting.load import load_line
from modules.reporting.page.bullet import bullet
from modules.reporting.page.history import history_plot
from modules.reporting.page.memory import gib, left, memory_bar
from modules.reporting.page.overview import bars, concerns, counts, headline
from modules.reporting.page.telemetry import telemetry_plot
from modules.reporting.report import FleetReport, Reading
from modules.reporting.wording import amount, share, workload_title

_FOLDER = Path(__file__).parent


def render_page(report: FleetReport) -> str:
    """The whole page as text."""
    style = Markup((_FOLDER / "style.css").read_text(encoding="utf-8"))  # noqa: S704, a file of ours
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            style=style,
            counts=counts(report),
            bars=bars(report.hosts),
            concerns=concerns(report.hosts),
            embedded=_embedded(report),
        )
    )


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": amount,
        "when": _when,
        "gib": gib,
        "workload": workload_title,
        "let_pass": let_pass,
    }
    environment.globals |= {
        "bullet": bullet,
        "history_plot": history_plot,
        "telemetry_plot": telemetry_plot,
        "memory_bar": memory_bar,
        "memory_left": left,
        "headline": headline,
        "change": _change,
        "load_line": load_line,
        "asked": asked,
    }
    return environment


def _embedded(report: FleetReport) -> Markup:
    """The report itself, for programs. Nothing in it can end the element that it stands in."""
    return Markup(report.model_dump_json().replace("<", "\\u003c"))  # noqa: S704


def _when(utc: str) -> str:
    return utc[:16].replace("T", " ") + " UTC"


def _change(now: Reading | None, reference: float) -> str:
    return "" if now is None or reference == 0 else share(now.mean / reference - 1)
