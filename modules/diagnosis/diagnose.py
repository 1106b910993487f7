"""From a bundle to findings, the most probable cause first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from modules.diagnosis.bundle import Bundle, Log
from modules.diagnosis.match import Evidence, Match, matches
from modules.facts.parse.exceptions import entries, raised
from modules.spec.signature import Signature

UNKNOWN = "unknown"
# What an exception's line says when it only passes another one's end on.
_PASSED_ON = ("Engine core initialization failed", "EngineCore", "Engine process failed")


@dataclass(frozen=True)
class Finding:
    """A cause with its lines. `certain`: whether the lines prove it; `supported_by`: weaker signs of the same."""

    name: str
    certain: bool
    meaning: str
    action: str
    source: str
    evidence: tuple[Evidence, ...]
    supported_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """`gaps`: what could not be read, so that nothing is known of it."""

    findings: tuple[Finding, ...]
    gaps: tuple[str, ...]


def diagnose(bundle: Bundle, signatures: Mapping[str, Signature]) -> Diagnosis:
    """Match, weigh and order.

    A sign that healthy hosts show at times counts only where something is known to be wrong. Of two that speak of the
    same, the one that says more is told. Those that prove something come first, then those with more signs, then those
    that were logged earlier. Where none proves anything, what the engine raised is told as it is.
    """
    found = matches(signatures, bundle.logs)
    meant = {name: match for name, match in found.items() if _means_something(match, found)}
    troubled = bundle.failed or any(match.signature.certain for match in meant.values())
    counting = {name: match for name, match in meant.items() if match.signature.certain or troubled}
    merged = _merged(counting)
    ordered = sorted(merged, key=lambda pair: _rank(*pair))
    findings = [_finding(match, weaker) for match, weaker in ordered]
    if bundle.failed and not any(finding.certain for finding in findings):
        findings = [*_raised(bundle.logs), *findings]
    told = [finding for finding in findings if not _general(finding, signatures)]
    gaps = tuple(f"{log.name}: {log.trouble}" for log in bundle.logs if log.trouble is not None)
    return Diagnosis(tuple(told or findings), gaps)


def _means_something(match: Match, found: Mapping[str, Match]) -> bool:
    supports = match.signature.supports
    return not supports or any(name in found for name in supports)


def _merged(counting: Mapping[str, Match]) -> list[tuple[Match, tuple[str, ...]]]:
    """Each match that yields to no other, with the names of those that yield to it, directly or not."""

    def stronger(match: Match) -> Match:
        seen = {match.name}
        while above := [name for name in match.signature.yields_to if name in counting and name not in seen]:
            match = counting[above[0]]
            seen.add(match.name)
        return match

    weaker: dict[str, list[Match]] = {}
    for match in counting.values():
        top = stronger(match)
        weaker.setdefault(top.name, [])
        if top.name != match.name:
            weaker[top.name].append(match)
    merged = []
    for name, below in weaker.items():
        evidence = dict.fromkeys((*counting[name].evidence, *(one for match in below for one in match.evidence)))
        merged.append((replace(counting[name], evidence=tuple(evidence)), tuple(match.name for match in below)))
    return merged


def _rank(match: Match, weaker: Sequence[str]) -> tuple[bool, int, tuple[int, int]]:
    return not match.signature.certain, -len(match.signature.patterns) - len(weaker), match.place


def _finding(match: Match, weaker: tuple[str, ...]) -> Finding:
    signature = match.signature
    return Finding(
        match.name, signature.certain, signature.meaning, signature.action, signature.source, match.evidence, weaker
    )


def _general(finding: Finding, signatures: Mapping[str, Signature]) -> bool:
    return finding.name in signatures and signatures[finding.name].general


def _raised(logs: Iterable[Log]) -> list[Finding]:
    """The first exception of an engine's log that is not another one's echo."""
    for log in logs:
        if log.kind != "engine":
            continue
        for error in raised(list(entries(log.lines))):
            if error.message.startswith(_PASSED_ON):
                continue
            said = f"{error.kind}: {error.message}" if error.message else error.kind
            line = Evidence(log.name, error.line, log.lines[error.line - 1].strip())
            meaning = f"not in the catalog; the engine says: {said}"
            return [Finding(UNKNOWN, False, meaning, "read the log around this line", "", (line,))]
    return []
