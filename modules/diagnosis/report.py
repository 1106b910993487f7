"""A diagnosis as people read it."""

from __future__ import annotations

from modules.diagnosis.diagnose import UNKNOWN, Diagnosis, Finding
from modules.diagnosis.match import Evidence

_SHOWN_LINES, _SHOWN_LENGTH = 3, 200


def report(diagnosis: Diagnosis) -> list[str]:
    """Lines: cause, evidence and remedy of each finding, the most probable first; then what was not read."""
    lines: list[str] = []
    for number, finding in enumerate(diagnosis.findings, start=1):
        lines += _finding(number, finding)
    if not diagnosis.findings:
        lines.append("no known failure is found")
    return lines + [f"not looked at: {gap}" for gap in diagnosis.gaps]


def _finding(number: int, finding: Finding) -> list[str]:
    head = "" if finding.certain or finding.name == UNKNOWN else "possibly: "
    lines = [f"{number}. {head}{finding.meaning} ({finding.name})"]
    lines += [f"   {_line(evidence)}" for evidence in finding.evidence[:_SHOWN_LINES]]
    if len(finding.evidence) > _SHOWN_LINES:
        lines.append(f"   and {len(finding.evidence) - _SHOWN_LINES} more")
    return [*lines, f"   what to do: {finding.action}"]


def _line(evidence: Evidence) -> str:
    text = evidence.text if len(evidence.text) <= _SHOWN_LENGTH else f"{evidence.text[:_SHOWN_LENGTH]}…"
    times = f" ({evidence.count} times)" if evidence.count > 1 else ""
    return f"{evidence.log} line {evidence.line}{times}: {text}"
