"""How preflight tells what it found, and stops a host."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import click
import pyinfra
from gevent import GreenletExit
from pyinfra import logger
from pyinfra.api import Host
from pyinfra.context import state

from roles.preflight.finding import Finding, Severity, blocking

_SHOWN = {
    Severity.BLOCKED: (logging.ERROR, "red"),
    Severity.SLOW: (logging.WARNING, "yellow"),
    Severity.NOTE: (logging.INFO, "blue"),
}


def report(host: Host, findings: Sequence[Finding], foreseen: Sequence[str] = ()) -> None:
    """Write every finding to pyinfra's log, and what a deploy would do."""
    for finding in findings:
        level, colour = _SHOWN[finding.severity]
        # An error would count as one of a host that is stopped here.
        level = min(level, logging.WARNING) if finding.stage else level
        head = click.style(f"preflight {finding.severity.value}:", colour)
        logger.log(level, f"{host.print_prefix}{head} {finding}")
    for line in foreseen:
        logger.info(f"{host.print_prefix}check: {line}")


def stop_host(host: Host, findings: Sequence[Finding]) -> None:
    """Fail this host and end its part in the run; the others go on, and pyinfra's exit status is 1.

    Raises pyinfra's error when no host is left.
    """
    count = len(blocking(findings))
    reasons = "this finding" if count == 1 else f"these {count} findings"
    logger.error(f"{host.print_prefix}nothing is done on this host because of {reasons}")
    # Without --yes pyinfra would ask at the terminal whether the others shall go on, and without a terminal a dry run
    # would end there for all of them.
    ask = state.should_raise_failed_hosts
    if ask is not None:
        state.should_raise_failed_hosts = _others_go_on
    try:
        # The host of pyinfra's context is a stand-in; what is failed must be the host itself.
        state.fail_hosts({state.inventory.get_host(host.name)})
    finally:
        state.should_raise_failed_hosts = ask
    if pyinfra.is_cli:
        # pyinfra prepares each host in a greenlet of its own and would go on to ask this one for the later stages'
        # facts; of all exceptions only this one ends a greenlet without ending the run.
        raise GreenletExit


def _others_go_on(_: object) -> bool:
    return False
