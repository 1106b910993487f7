"""Which hosts a dry run has shown to be out of reach for the change that follows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from modules.converge.run import Pass
from modules.facts.hostside import HOME
from modules.reporting.connection_advice import is_of_the_connection
from modules.reporting.host_errors import HostError

# How preflight begins what it says of a host that it stops.
STOPPED = "preflight "


def is_stopped(errors: Sequence[HostError]) -> bool:
    """Whether preflight has stopped the host."""
    return any(error["said"].startswith(STOPPED) for error in errors)


def left_out(seen: Pass) -> list[str]:
    """The hosts that are not to be changed: not reached, stopped by preflight, or known to be refused.

    What else fails in a dry run may be put right by the change itself: a host whose programs are of another version, or
    damaged, answers only when it has ours. It is looked at anew when it is changed, and so are its refusals.
    """
    renewed = {one["host"] for one in seen.differences if one["thing"].startswith(HOME)}
    out = {host for host in seen.outcome.refused if host not in renewed}
    for host in seen.outcome.failed:
        errors = seen.errors.get(host, ())
        if is_stopped(errors) or any(is_of_the_connection(error["said"]) for error in errors):
            out.add(host)
    return sorted(out)


def doubtful(seen: Pass) -> list[str]:
    """The hosts that could not be looked at wholly, and are changed all the same."""
    return sorted({*seen.outcome.failed, *seen.outcome.refused} - set(left_out(seen)))
