"""A fleet's check from what its hosts told, and the exit status that it comes to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modules.check.document import CheckDocument, HostCheck
from modules.converge.summary import excerpt
from modules.reporting.host_errors import HostError

# 1 is that of a fleet file or limit that was refused.
READY, REFUSED, BLOCKED, UNKNOWN, SLOW = 0, 1, 2, 3, 4
_NOT_ASKED = "the run ended before it was looked at"


def document(
    fleet: str,
    hosts: Sequence[str],
    told: Mapping[str, HostCheck],
    errors: Mapping[str, Sequence[HostError]],
    seconds: float,
) -> CheckDocument:
    """Every host of the run; one that told nothing is unknown, for the reason that its errors give."""
    checks = tuple(told[host] if host in told else _unknown(host, errors.get(host, ())) for host in hosts)
    return CheckDocument(fleet=fleet, status=status_of(checks), seconds=round(seconds, 1), hosts=checks)


def _unknown(host: str, errors: Sequence[HostError]) -> HostCheck:
    return HostCheck(host=host, verdict="unknown", why=tuple(excerpt(errors)) or (_NOT_ASKED,))


def status_of(checks: Sequence[HostCheck]) -> int:
    """What the program ends with: the worst that is certain, then what is not."""
    verdicts = {check.verdict for check in checks}
    if "blocked" in verdicts:
        return BLOCKED
    if "unknown" in verdicts:
        return UNKNOWN
    return SLOW if "slow" in verdicts else READY
