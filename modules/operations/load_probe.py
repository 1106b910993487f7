"""Find out how long a host needs to load a model, before an engine does."""

from __future__ import annotations

import hashlib
from collections.abc import Generator

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.load_probe import RATES_PROGRAM, WAYS_PROGRAM, Kept, LoadRates, LoadWays, rates_words
from modules.facts.survey import Question
from modules.fleet import ServicePlan, load_fleet
from modules.fleet.lock import read_lock
from modules.images.reference import image_reference
from modules.loading import Rates, shown_ways, slow_load
from modules.operations.job import Job, run_job
from modules.operations.require import unreadable
from modules.operations.weights import pinned_commit
from modules.release import layout
from modules.reporting.load import advice_of, advice_text, load_line, load_report
from modules.reporting.record import load_record, note_load

# Five passes of 15 s, and the page cache filled in between; a sick disk may take its time.
_RATES_S = 900
# Eleven ways, two rounds each, of 8 GiB: half an hour where the disk gives 180 MB/s.
_WAYS_S = 2 * 3600
# An operation is asked twice, for the plan of a run and in the run; people are told once.
_told: set[tuple[str, str]] = set()


def _key(words: list[str]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


def _snapshot(plan: ServicePlan, home: str) -> str | None:
    commit = pinned_commit(plan.model)
    return None if commit is None else layout.snapshot_directory(home, plan.model.repository, commit)


def rates_job(plan: ServicePlan, directory: str) -> Job:
    """The job that measures how fast a model's files are read."""
    words = rates_words(directory, plan.model.file)
    command = (layout.PYTHON, RATES_PROGRAM, *words)
    title = f"reading {plan.model.repository.split('/')[1]} on trial"
    return Job("load-rates", _key(words), title, command, _RATES_S)


def rates_there(plan: ServicePlan, home: str) -> Question[Kept] | None:
    """What is known of reading the model's files; None: the revision was not resolved yet."""
    directory = _snapshot(plan, home)
    return None if directory is None else Question(LoadRates, {"directory": directory, "file": plan.model.file})


@operation()
def load_rates_known(plan: ServicePlan, home: str) -> Generator[PyinfraCommand, None, None]:
    """Have measured, once, how fast the model's files are read; warn where a load will take longer than it should.

    + plan: the service
    + home: the Hugging Face home
    """
    directory, there = _snapshot(plan, home), rates_there(plan, home)
    if directory is None or there is None:
        host.noop(f"the revision of {plan.model.repository} was not resolved yet")
        return
    found = there.of(host)
    if found is None:
        yield from unreadable(f"how fast {plan.model.repository} is read")
    elif found.rates is not None:
        warn(host, plan, found.rates)
        host.noop(kept(host, plan, found.rates))
    else:
        yield from run_job(rates_job(plan, directory))
        yield FunctionCommand(tell_rates, (plan, directory), {})


def tell_rates(state: State, host: Host, plan: ServicePlan, directory: str) -> bool:
    """Tell what a job has just measured; pyinfra passes `state` and `host` by name."""
    found = host.get_fact(LoadRates, directory=directory, file=plan.model.file)
    if found is None or found.rates is None:
        host.log(f"{plan.name}: what was measured is not there", log_func=logger.error)
        return False
    host.log(f"{plan.name}: {kept(host, plan, found.rates)}")
    warn(host, plan, found.rates)
    return True


def kept(host: Host, plan: ServicePlan, rates: Rates) -> str:
    """Keep it on the controller, for tables and reports; gives it in words."""
    report = load_report(plan, rates, None)
    assert report is not None
    fleet = load_fleet().name
    former = load_record(fleet, host.name, plan.name).load
    if former is not None and former.model_copy(update={"advice": ""}) == report:
        return load_line(report)
    try:
        note_load(fleet, host.name, plan.name, report)
    except OSError as error:
        # An exception would end the run of every host, and the host keeps its figures anyway.
        host.log(f"{host.name}: the controller could not keep what was measured: {error}", log_func=logger.warning)
    return load_line(report)


def warn(host: Host, plan: ServicePlan, rates: Rates) -> None:
    """Say it where a load will take too long: a warning, once a run, and the engine is started all the same."""
    line = slow_load(rates, plan.flags, plan.model.load_seconds)
    if line is not None and (host.name, line) not in _told:
        _told.add((host.name, line))
        host.log(f"{host.name}: service {plan.name}: {line}", log_func=logger.warning)


def ways_words(plan: ServicePlan, home: str, directory: str) -> list[str]:
    """The arguments of `probe_ways.py`."""
    gpus = (plan.service.container or plan.engine.container).gpus
    image = image_reference(plan.recipe, read_lock(load_fleet().path))
    words = ["--image", image, "--directory", directory, "--hub", layout.hub_cache(home)]
    return [*words, "--device", "cuda:0" if gpus else "cpu", *(["--gpus", "all"] if gpus else [])]


@operation()
def load_ways_known(plan: ServicePlan, home: str) -> Generator[PyinfraCommand, None, None]:
    """Have measured, once, how fast each way loads the model to the device, and say which one the engine should take.

    + plan: the service
    + home: the Hugging Face home
    """
    directory = _snapshot(plan, home)
    if directory is None or plan.model.file is not None:
        host.noop(f"{plan.model.repository} is not loaded from safetensors, or not resolved yet")
        return
    words = ways_words(plan, home, directory)
    found = host.get_fact(LoadWays, words=words)
    if found is None:
        yield from unreadable(f"how fast {plan.model.repository} is loaded")
    elif found.ways is not None:
        say_ways(host, plan, found)
        host.noop("every way of loading was measured")
    else:
        command = (layout.PYTHON, WAYS_PROGRAM, *words)
        title = f"loading {plan.model.repository.split('/')[1]} on trial"
        yield from run_job(Job("load-ways", _key(words), title, command, _WAYS_S))
        yield FunctionCommand(tell_ways, (plan, words), {})


def tell_ways(state: State, host: Host, plan: ServicePlan, words: list[str]) -> bool:
    """Tell what a job has just measured; pyinfra passes `state` and `host` by name."""
    found = host.get_fact(LoadWays, words=words)
    if found is None or found.ways is None:
        host.log(f"{plan.name}: what was measured is not there", log_func=logger.error)
        return False
    say_ways(host, plan, found)
    return True


def say_ways(host: Host, plan: ServicePlan, found: Kept) -> None:
    """Every way's figures, and the recommendation."""
    assert found.ways is not None
    lines = shown_ways(found.ways)
    if (host.name, "\n".join(lines)) in _told:
        return
    _told.add((host.name, "\n".join(lines)))
    for line in lines:
        host.log(f"{plan.name}: {line}")
    host.log(f"{plan.name}: {advice_text(plan, advice_of(plan, found.ways))}")
