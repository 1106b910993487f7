"""What a run did, in lines. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from modules.converge.outcome import Outcome
from modules.reporting.connection_advice import is_of_the_connection
from modules.reporting.host_errors import HostError

Errors = Mapping[str, Sequence[HostError]]
# Of a long error, such as a job's last log lines: how many are repeated at its start and at its end.
_FIRST, _LAST = 1, 5
# Of what a host would change: so many stand on one line; more are told stage by stage.
_ON_ONE_LINE = 3


def completed(outcome: Outcome | None, errors: Errors, *, dry: bool) -> Outcome:
    """What pyinfra leaves out: which hosts failed in a dry run, and in a run of which there are no results (None)."""
    if outcome is not None and not dry:
        return outcome
    known = outcome or Outcome(operations=0)
    tried = {host: [error for error in found if not error.get("foreseen")] for host, found in errors.items()}
    failed = {host: [of[-1]["operation"]] if of[-1]["operation"] else [] for host, of in tried.items() if of}
    refused = {
        host: list(dict.fromkeys(error["operation"] for error in found if error.get("foreseen")))
        for host, found in errors.items()
        if any(error.get("foreseen") for error in found)
    }
    changed = {host: [one for one in of if one not in refused.get(host, ())] for host, of in known.changed.items()}
    return replace(known, failed=failed, refused=refused, changed={host: of for host, of in changed.items() if of})


def summary(outcome: Outcome, errors: Errors, *, dry: bool) -> list[tuple[str, str]]:
    """The lines, with their style; below a host that failed, why."""
    lines: list[tuple[str, str]] = []
    for host, names in sorted(outcome.failed.items()):
        said = errors.get(host, ())
        if dry and any(is_of_the_connection(error["said"]) for error in said):
            # Nothing was tried there yet, so nothing failed there.
            head, style = f"{host}: unknown, it was not reached", "yellow"
        else:
            head, style = f"{host}: FAILED {f'at {names[0]}' if names else 'before its first operation'}", "red"
        lines += [(head, style), *((f"    {line}", style) for line in excerpt(said))]
    for host, names in sorted(outcome.refused.items()):
        for name in names:
            lines.append((f"{host}: would be refused at {name}", "red"))
            lines += [(f"    {line}", "red") for line in excerpt([e for e in errors[host] if e["operation"] == name])]
    verb = "would change" if dry else "changed"
    for hosts, changes in alike(outcome.changed):
        head = f"{', '.join(hosts)}: {verb} {len(changes)}"
        if len(changes) <= _ON_ONE_LINE:
            lines.append((f"{head}: {', '.join(changes)}", "yellow"))
        else:
            lines.append((f"{head}:", "yellow"))
            lines += [(f"    {stage}: {', '.join(of)}", "yellow") for stage, of in by_stage(changes).items()]
    if not outcome.changed and not outcome.failed and not outcome.refused:
        lines.append((f"no change on any host ({outcome.operations} operations)", "green"))
    return lines


def alike(changed: Mapping[str, Sequence[str]]) -> list[tuple[list[str], Sequence[str]]]:
    """Hosts of which the same is to be told, together: a fleet that is new has a list as long as one host's."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for host, names in sorted(changed.items()):
        groups.setdefault(tuple(names), []).append(host)
    return [(hosts, names) for names, hosts in groups.items()]


def by_stage(names: Sequence[str]) -> dict[str, list[str]]:
    """Operations by their stage, which pyinfra puts before their name."""
    stages: dict[str, list[str]] = {}
    for name in names:
        stage, _, rest = name.rpartition(" | ")
        stages.setdefault(stage or "other", []).append(rest)
    return stages


def excerpt(errors: Sequence[HostError]) -> list[str]:
    """What a host's last operation said, or its start and its end, below the host's own name."""
    said = [line.strip().removeprefix(f"{error['host']}: ") for error in errors
            if error["operation"] == errors[-1]["operation"] for line in error["said"].splitlines()]  # fmt: skip
    return said if len(said) <= _FIRST + _LAST + 1 else [*said[:_FIRST], "...", *said[-_LAST:]]
