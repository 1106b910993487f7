"""How preflight tells what it found, and stops a host."""

from __future__ import annotations

from collections.abc import Sequence

import click
from pyinfra import logger
from pyinfra.api import Host
from pyinfra.context import state

from roles.preflight.finding import Finding, Severity, blocking

_COLOURS = {Severity.BLOCKED: "red", Severity.SLOW: "yellow", Severity.NOTE: "blue"}


def report(host: Host, findings: Sequence[Finding]) -> None:
    """Write every finding to pyinfra's log."""
    for finding in findings:
        logger.log(
            _level(finding.severity),
            f"{host.print_prefix}{click.style(f'preflight {finding.severity.value}:', _COLOURS[finding.severity])} "
            f"{finding}",
        )


def stop_host(host: Host, findings: Sequence[Finding]) -> None:
    """Fail this host; the others go on, and pyinfra's exit status is 1.

    Raises pyinfra's error when no host is left.
    """
    count = len(blocking(findings))
    logger.error(f"{host.print_prefix}nothing is done on this host: {count} finding{'s' if count > 1 else ''} stop it")
    # Without --yes pyinfra would ask at the terminal whether the others shall go on, and without a terminal a dry run
    # would end there for all of them.
    ask = state.should_raise_failed_hosts
    if ask is not None:
        state.should_raise_failed_hosts = _others_go_on
    try:
        state.fail_hosts({host})  # type: ignore[no-untyped-call]
    finally:
        state.should_raise_failed_hosts = ask


def _others_go_on(_: object) -> bool:
    return False


def _level(severity: Severity) -> int:
    return {Severity.BLOCKED: 40, Severity.SLOW: 30, Severity.NOTE: 20}[severity]
