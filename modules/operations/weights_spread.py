"""Pass a model on from the hosts that have it to those that do not."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, QuoteString, State, StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.job import JobState
from modules.facts.tools import TOOLS_PYTHON
from modules.operations.differences import for_others
from modules.operations.job import Job, run_job, start_command
from modules.operations.managed_files import ManagedFile, settle
from modules.operations.spread_board import Spreading, spreading
from modules.operations.weights import Wanted, Wish, fetch, my_part, wish_of
from modules.release import layout
from modules.spreading.parts import Part, givers
from modules.spreading.request import swarm_request

_HASHING_S = 3600
# A slow line between the hosts (100 Mbit/s) takes an hour and a half for gpt-oss-120b.
_TAKING_S = 24 * 3600
_GIB = 1024**3


def _job(name: str, wish: Wish, title: str, program: str, *words: str, timeout_s: int = _TAKING_S) -> Job:
    python = TOOLS_PYTHON if name != "offer" else layout.PYTHON
    command = (python, str(layout.PROGRAMS / program), *words)
    return Job(name, wish.key, f"{title} {wish.model.repository.split('/')[1]}", command, timeout_s)


def _request_file(wish: Wish) -> str:
    return f"/var/lib/tinderbox/weights/{wish.key}.request.json"


def offer_job(wish: Wish, commit: str) -> Job:
    """Describe what the host has, for others to take."""
    words = ["--repository", wish.model.repository, "--commit", commit, "--home", wish.weights.home]
    return _job("offer", wish, "pieces of", "offer_weights.py", *words, timeout_s=_HASHING_S)


def share_job(wish: Wish) -> Job:
    """Give it to others."""
    return _job("share", wish, "sharing", "share_weights.py", _request_file(wish))


def take_job(wish: Wish) -> Job:
    """Take it from others."""
    return _job("take", wish, "weights", "take_weights.py", _request_file(wish))


def read_offer(state: State, host: Host, job: Job, board: Spreading) -> bool:
    """Keep what the host offers for those who take it."""
    status = host.get_fact(JobState, job=job.name, key=job.key)
    if status is None or status.result is None:
        host.log(f"{job.title}: the job described nothing; look at it: {job.unit}", log_func=logger.error)
        return False
    board.offer = status.result
    return True


@operation()
def weights_offered(wanted: Wanted) -> Generator[PyinfraCommand, None, None]:
    """Have the first of the hosts that have the model describe it, if there are others that lack it.

    + wanted: the model, and where it is kept
    """
    board = spreading(wanted.model)
    if my_part(board) is not Part.GIVE or givers(board.taking_part())[0].name != host.name:
        return
    for_others()
    job = offer_job(wish_of(wanted), board.commits[host.name] or "")
    yield from run_job(job)
    yield FunctionCommand(read_offer, (job, board), {})


@operation()
def weights_shared(wanted: Wanted) -> Generator[PyinfraCommand, None, None]:
    """Have every host that has the model give it, if there are others that lack it.

    + wanted: the model, and where it is kept
    """
    board = spreading(wanted.model)
    if my_part(board) is not Part.GIVE:
        return
    wish = wish_of(wanted)
    for_others()
    board.sharing.add(host.name)
    yield from settle([ManagedFile(_request_file(wish), _request(wish, board), "600")])
    yield start_command(share_job(wish))


@operation()
def weights_taken(wanted: Wanted) -> Generator[PyinfraCommand, None, None]:
    """Take the model from the other hosts where that is this host's part: each file verified.

    + wanted: the model, and where it is kept
    """
    board = spreading(wanted.model)
    if my_part(board) not in {Part.TAKE, Part.FETCH}:
        return
    if board.offer is None:
        # Nobody in this run can give it: they failed, or pyinfra does one host after the other (--serial).
        yield from fetch(wanted)
        return
    wish = wish_of(wanted)
    yield from settle([ManagedFile(_request_file(wish), _request(wish, board), "600")])
    yield from run_job(take_job(wish))


@operation()
def weights_sharing_ended(wanted: Wanted) -> Generator[PyinfraCommand, None, None]:
    """Have nobody listen any more who was to give the model in this run.

    + wanted: the model, and where it is kept
    """
    if host.name not in spreading(wanted.model).sharing:
        return
    wish = wish_of(wanted)
    yield StringCommand(
        *("systemctl stop", share_job(wish).unit, "2>/dev/null; rm -f", QuoteString(_request_file(wish))),
    )


def _request(wish: Wish, board: Spreading) -> str:
    members = board.taking_part()
    mine = next(member for member in members if member.name == host.name)
    # Tried beforehand, before anybody offered anything, its content does not matter.
    offer: dict[str, Any] = board.offer or dict.fromkeys(
        ("commit", "filters", "files", "tree", "name", "piece_bytes", "pieces")
    )
    return swarm_request(
        mine,
        members,
        repository=wish.model.repository,
        revision=wish.model.revision,
        weights=wish.weights,
        reserve_bytes=int(wish.reserve_gib * _GIB),
        offer=offer,
    )
