"""A rollout by pyinfra: each of its steps is a run of a deploy file over the hosts whose turn it is."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from modules.converge.run import Pass, one_pass
from modules.converge.tell import say, tell_pass
from modules.fleet import Fleet
from modules.operations.asked import ROLLOUT, SERVICE, operator
from modules.rollout.execute import Ran, Rollout
from modules.rollout.record import RECORD_FILE, RolloutRecord
from modules.rollout.survey import SURVEY_FILE, HostSurvey, read_survey
from modules.spec.strategy import Strategy

# The deploy file whose stages a rollout goes through step by step.
STEPWISE = "spark.py"
_LONGEST = 240


def roll_out(
    fleet: Fleet, strategy: Strategy, hosts: Sequence[str], refused: Mapping[str, str]
) -> tuple[int, list[str]]:
    """Go over these hosts. `refused`: host → why a dry run knows that it would be.

    Returns the exit status, and the hosts on which the run has failed.
    """
    failed: set[str] = set()

    def run(
        deploy: str, hosts: Sequence[str], *, label: str = "", record: RolloutRecord | None = None, service: str = ""
    ) -> Ran:
        with tempfile.TemporaryDirectory(prefix="tinderbox-rollout-") as folder:
            survey, noted = Path(folder) / "survey.jsonl", Path(folder) / "record.json"
            if record is not None:
                noted.write_text(record.text(), encoding="utf-8")
            variables = {SURVEY_FILE: str(survey), ROLLOUT: label, RECORD_FILE: str(noted) if record else ""}
            with _environment(variables | ({SERVICE: service} if service else {})):
                done = one_pass(deploy, hosts, dry=False)
            tell_pass(done)
            ran = ran_of(done, hosts, read_survey(survey))
        failed.update(ran.failed)
        return ran

    rollout = Rollout(
        strategy=strategy,
        hosts=hosts,
        groups={name: host.groups for name, host in fleet.hosts.items()},
        run=run,
        say=lambda line: say(line, "cyan"),
        now=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        by=operator(),
        refused=refused,
    )
    return rollout.go(), sorted(failed)


def ran_of(done: Pass, names: Sequence[str], told: Sequence[HostSurvey]) -> Ran:
    """What came of a run. One that ended without results failed on every host of which nothing else is known."""
    failed = {name: why_of(done, name) for name in done.outcome.failed}
    untouched = [name for name, operations in done.outcome.failed.items() if not operations]
    if not done.finished and not done.interrupted:
        failed = {**dict.fromkeys(names, "the run ended before it was through with it"), **failed}
    return Ran(done.status, failed, untouched, told)


def why_of(done: Pass, host: str) -> str:
    """The first sentence of the last that was said of a failure."""
    said = [error["said"] for error in done.errors.get(host, ())]
    lines = said[-1].strip().splitlines() if said else []
    operations = done.outcome.failed.get(host) or ["the connection"]
    line = lines[0].removeprefix(f"{host}: ").partition(". ")[0] if lines else f"failed at {operations[0]}"
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """While this lasts, child processes know these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
