"""A model's files on a host."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.job import JobState
from modules.facts.survey import Question
from modules.facts.tools import TOOLS_PYTHON
from modules.facts.weights import WeightsOnHost, WeightsState
from modules.fleet import load_fleet
from modules.fleet.lock import read_lock, record
from modules.operations.differences import differs
from modules.operations.job import Job, run_job
from modules.operations.managed_files import ManagedFile, settle
from modules.operations.require import unreadable
from modules.operations.spread_board import Spreading, spreading
from modules.release import layout
from modules.spec.model import Model
from modules.spec.settings import Weights
from modules.spreading.parts import Part, part_of

# A slow line (20 Mbit/s) takes seven hours for gpt-oss-120b.
_TIMEOUT_S = 24 * 3600
_GIB = 1024**3
_COMMIT = re.compile(r"^[0-9a-f]{40}$")


@dataclass(frozen=True)
class Wanted:
    """A model that a host should have. `reserve_gib`: free space that must remain on the disk."""

    model: Model
    weights: Weights
    reserve_gib: float


@dataclass(frozen=True)
class Wish:
    """What is wanted of a model. `commit`: what its revision is pinned to; None: the hub is still to be asked."""

    model: Model
    weights: Weights
    commit: str | None
    reserve_gib: float

    @property
    def key(self) -> str:
        """Equal for equal wishes, so that a second run finds the job of the first."""
        words = [self.model.repository, self.commit or self.model.revision, self.weights.home]
        words += ["include", *self.model.include, "exclude", *self.model.exclude]
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def wish_of(wanted: Wanted) -> Wish:
    """What is wanted, with the commit that the lock has for it by now."""
    return Wish(wanted.model, wanted.weights, pinned_commit(wanted.model), wanted.reserve_gib)


def pinned_commit(model: Model) -> str | None:
    """The commit that the model's revision is, or stands for by the fleet's lock; None: it was not resolved yet."""
    if _COMMIT.match(model.revision):
        return model.revision
    return read_lock(load_fleet().path).commit(model.repository, model.revision)


def token_file(secret: str) -> str:
    """Where the host keeps the hub's token (0600): a job's arguments and environment can be seen by others."""
    return str(layout.SETTINGS / f"hub-token.{secret}")


def is_settled(wish: Wish, state: WeightsState) -> bool:
    """Whether the host has what is wanted, verified, and untouched since; never before it is known what is wanted.

    What a branch stood for on the host when it was last fetched is not what it stands for: the lock says that.
    """
    filters = {"include": wish.model.include, "exclude": wish.model.exclude}
    return state.stamped and not state.problems and state.filters == filters and state.commit == wish.commit


def not_settled(wish: Wish, state: WeightsState) -> str:
    """Why a host's files are not taken for what is wanted, where none of them is at fault."""
    if wish.commit is not None and state.commit not in {None, wish.commit}:
        return f"at commit {state.commit}, and should be at {wish.commit}"
    return "there, and were fetched by other patterns" if state.stamped else "not there, or were never verified"


def locked_files(wish: Wish) -> Mapping[str, str]:
    """What the fleet's lock has of the files: path → hash and size; nothing before they were fetched once."""
    lock = read_lock(load_fleet().path)
    return lock.listing(wish.model.repository, wish.commit) if wish.commit is not None else {}


def locked_file(wish: Wish) -> str:
    """Where the host has them, to hold what the hub lists against."""
    return f"/var/lib/tinderbox/weights/{wish.key}.locked.json"


def fetch_job(wish: Wish) -> Job:
    """The job that makes it so."""
    model = wish.model
    words = ["--repository", model.repository, "--revision", model.revision, "--home", wish.weights.home]
    words += ["--commit", wish.commit] if wish.commit is not None else []
    words += [f"--include={pattern}" for pattern in model.include]
    words += [f"--exclude={pattern}" for pattern in model.exclude]
    words += ["--workers", str(wish.weights.workers), "--reserve-bytes", str(int(wish.reserve_gib * _GIB))]
    words += ["--token-file", token_file(model.token)] if model.token is not None else []
    words += ["--locked", locked_file(wish)] if locked_files(wish) else []
    command = (TOOLS_PYTHON, str(layout.PROGRAMS / "fetch_weights.py"), *words)
    return Job("weights", wish.key, f"weights {model.repository.split('/')[1]}", command, _TIMEOUT_S, "fetch")


def record_commit(state: State, host: Host, job: Job, model: Model) -> bool:
    """Keep what the revision stood for, and its files, in the fleet's lock: every run and every host gets the same."""
    status = host.get_fact(JobState, job=job.name, key=job.key)
    result = status.result if status is not None and status.result is not None else {}
    commit, files = result.get("commit"), result.get("files")
    if not isinstance(commit, str):
        host.log(f"{job.title}: the job named no commit; look at it: {job.unit}", log_func=logger.error)
        return False
    path, loose = load_fleet().path, not _COMMIT.match(model.revision)
    lock = record(path, models={f"{model.repository}@{model.revision}": commit} if loose else {})
    wanted = lock.commit(model.repository, model.revision) if loose else commit
    if wanted == commit:
        record(path, files={f"{model.repository}@{commit}": files} if isinstance(files, dict) else {})
        return True
    host.log(
        f"{model.repository}@{model.revision} moved from {wanted} to {commit} during this run; the lock keeps the "
        "former: run again to have it here",
        log_func=logger.error,
    )
    return False


def weights_there(wanted: Wanted) -> Question[WeightsState]:
    """What the host has of the model."""
    model, commit = wanted.model, pinned_commit(wanted.model)
    asked = {"repository": model.repository, "revision": commit or model.revision, "home": wanted.weights.home}
    return Question(WeightsOnHost, asked)


@operation()
def weights_seen(wanted: Wanted) -> Generator[PyinfraCommand, None, None]:
    """Look what the host has of a model, for the operations that follow; changes nothing.

    + wanted: the model, and where it is kept
    """
    wish, model = wish_of(wanted), wanted.model
    state = weights_there(wanted).of(host)
    if state is None:
        yield from unreadable(f"the weights of {model.repository}")
        return
    whole = is_settled(wish, state)
    spreading(model).tell(host.name, state, wanted.weights, whole=whole)
    for problem in state.problems:
        differs(f"weights {model.repository}", problem)
    if not whole and not state.problems:
        differs(f"weights {model.repository}", f"are {not_settled(wish, state)}")
    if whole:
        host.noop(f"{model.repository}@{state.commit} is there: {state.files} files, verified and untouched")


@operation()
def weights_fetched(wanted: Wanted) -> Generator[PyinfraCommand, None, None]:
    """Fetch a model from outside where that is this host's part: each file verified, at the commit of the lock.

    + wanted: the model, and where it is kept
    """
    if my_part(spreading(wanted.model)) is Part.FETCH:
        yield from fetch(wanted)


def fetch(wanted: Wanted) -> Generator[PyinfraCommand, None, None]:
    """What an operation yields from to have the model from outside."""
    wish, model = wish_of(wanted), wanted.model
    if model.token is not None:
        token = load_fleet().secret(model.token)
        yield from settle([ManagedFile(token_file(model.token), f"{token}\n", "600")])
    known = locked_files(wish)
    if known:
        yield from settle([ManagedFile(locked_file(wish), f"{json.dumps(known, indent=1)}\n")])
    job = fetch_job(wish)
    yield from run_job(job)
    if not known:
        yield FunctionCommand(record_commit, (job, model), {})
    spreading(model).settled(host.name, pinned_commit(model))


def my_part(board: Spreading) -> Part:
    """What this host has to do; nothing before it has told what it has."""
    members = board.taking_part()
    return part_of(host.name, members) if any(member.name == host.name for member in members) else Part.NOTHING
