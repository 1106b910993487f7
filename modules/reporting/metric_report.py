"""What a report tells of one figure: measured, published, and held to its bound."""

from __future__ import annotations

from collections.abc import Mapping

from modules.facts.parse.llama_benchy import Metric
from modules.gating.decision import decide
from modules.gating.direction import lower_is_better, unit_of
from modules.gating.metrics import Measurement
from modules.reporting.measured import Figure, MeasuredService
from modules.reporting.record import ServiceRecord, line_reports
from modules.reporting.report import (
    Bounds,
    HistoryPoint,
    LineReport,
    MetricReport,
    Published,
    Reading,
)
from modules.reporting.wording import wording_of
from modules.spec.gate import Gate, Threshold


def verdicts_of(gate: Gate, measured: MeasuredService, record: ServiceRecord) -> Mapping[str, LineReport]:
    """Each metric's own verdict: as it was noted with the gate's, else by the fixed bounds, which need nothing more."""
    if record.judged == measured.measured:
        return record.lines
    metrics = {name: Metric(one.mean, one.std, one.values) for name, one in measured.metrics.items()}
    return line_reports(decide(gate, Measurement(metrics, {})).judgement)


def metric_of(
    name: str,
    *,
    threshold: Threshold | None,
    line: LineReport | None,
    figure: Figure | None,
    published: Published | None,
    former: HistoryPoint | None,
    outdated: bool,
) -> MetricReport:
    """What is told of one figure of a service."""
    words = wording_of(name)
    bounds = threshold.model_dump(include=set(Bounds.model_fields)) if threshold is not None else {}
    return MetricReport(
        name=name,
        title=words.title,
        detail=words.detail,
        unit=unit_of(name),
        lower_is_better=lower_is_better(name),
        verdict=None if line is None else line.verdict,
        reason=_reason(line, figure, outdated=outdated),
        now=None if figure is None else Reading(mean=figure.mean, std=figure.std, runs=len(figure.values)),
        bounds=Bounds.model_validate(bounds),
        baseline=published,
        last_good=None if former is None else former.readings.get(name),
    )


def _reason(line: LineReport | None, figure: Figure | None, *, outdated: bool) -> str:
    """Why there is no pass. `outdated`: the gate has changed since it was judged, so what stands beside it is older."""
    said = [line.reason] if line is not None and line.reason else []
    if outdated:
        said.append(
            "the gate has changed since: the next run " + ("measures it" if figure is None else "judges it anew")
        )
    return "; ".join(said)
