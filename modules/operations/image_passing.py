"""An image passes from the host that has it to the run's other hosts, over the site's own network.

Four operations in this order, since each ends on all hosts before the next begins on any: survey, offer, receive, end.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import time
from collections.abc import Generator, Sequence

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, QuoteString, State, StringCommand, operation
from pyinfra.api.command import PyinfraCommand
from pyinfra.api.state import StateStage

from modules.facts.image_survey import ReachedAt
from modules.facts.job import JobState
from modules.fleet import load_fleet
from modules.fleet.lock import read_lock
from modules.images import image_key, image_reference
from modules.operations.differences import differs, for_others
from modules.operations.image_survey import Offered, passing_for, run_of, surveyed
from modules.operations.job import Job, run_job
from modules.operations.reach import UnreachableError, ask
from modules.operations.require import refusal, unreadable
from modules.operations.transfer_keys import transfer_keys
from modules.release import layout
from modules.spec.image import Recipe

OFFER = str(layout.PROGRAMS / "offer_images.py")
# In memory, as all keys of a transfer.
KEYS = "/run/tinderbox/receive"
_TIMEOUT_S = 6 * 3600


def push_job(name: str, port: int) -> Job:
    """The job that puts an image into its host's registry."""
    command = (layout.PYTHON, str(layout.PROGRAMS / "push_image.py"), name, str(port))
    return Job("offer", _key(name), f"offering image {name}", command, _TIMEOUT_S)


def receive_job(offered: Offered, address: str, port: int) -> Job:
    """The job that gets an image from there."""
    key = _key(offered.name, offered.digest)
    words = [keys_file(key), address, str(port), offered.name, offered.digest, offered.id]
    command = (layout.PYTHON, str(layout.PROGRAMS / "receive_image.py"), *words)
    return Job("receive", key, f"receiving image {offered.name}", command, _TIMEOUT_S)


def keys_file(key: str) -> str:
    """Where a receiving host has its key for the transfer, until it has the image."""
    return f"{KEYS}/{key}.pem"


def _key(*words: str) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]


def usable_address(address: str | None) -> bool:
    """Whether others may reach a host at what it was reached at itself."""
    return address is not None and not ipaddress.ip_address(address.partition("%")[0]).is_loopback


@operation()
def images_surveyed() -> Generator[PyinfraCommand, None, None]:
    """Look what the host has of all its images, in one round trip. Changes nothing."""
    if surveyed(host) is None:
        yield from unreadable("what images it has")
    else:
        host.noop("its images were looked at")


@operation()
def images_offered(
    recipes: Sequence[Recipe], port: int, peer_address: str | None
) -> Generator[PyinfraCommand, None, None]:
    """Offer what this host has and others lack, over TLS and to them alone.

    + recipes: of this host's images
    + port: where to listen
    + peer_address: the host's address on the network between the hosts, where the fleet file names one
    """
    passed_on = [recipe for recipe in recipes if _offers(recipe)]
    if not passed_on:
        host.noop("no other host of this run needs an image from here")
        return
    for_others()
    yield FunctionCommand(open_offer, (port, peer_address), {})
    lock = read_lock(load_fleet().path)
    for recipe in passed_on:
        job = push_job(image_reference(recipe, lock), port)
        yield from run_job(job)
        yield FunctionCommand(note_offer, (job, image_reference(recipe, lock), image_key(recipe)), {})


def _offers(recipe: Recipe) -> bool:
    found = passing_for(host, recipe)
    return found.builder == host.name and bool(found.receivers)


def open_offer(state: State, host: Host, port: int, peer_address: str | None) -> bool:
    """Have the host's registry run, and keep what the others need to reach it."""
    address = peer_address or host.get_fact(ReachedAt, _sudo=False)
    if address is None or not usable_address(address):
        host.log(
            f"others can not receive images from here: this host was reached at {address or 'an unknown address'}. Set "
            "network.peer_address in its settings to its address on the network between the hosts",
            log_func=logger.error,
        )
        return False
    keys = transfer_keys(address)
    offer = {"address": address, "port": port, **vars(keys)}
    try:
        ok, output = ask(host, StringCommand(layout.PYTHON, OFFER, "begin"), _wait, stdin=json.dumps(offer))
    except UnreachableError as error:
        host.log(f"images can not be offered from here: {error}", log_func=logger.error)
        return False
    if not ok:
        for line in output.stderr_lines:
            host.log(line, log_func=logger.error)
        return False
    run_of(state).access[host.name] = json.loads(output.stdout_lines[-1])
    return True


def _wait(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def note_offer(state: State, host: Host, job: Job, name: str, key: str) -> bool:
    """Keep by which digest the others are to pull."""
    status = host.get_fact(JobState, job=job.name, key=job.key)
    result = (status.result if status is not None else None) or {}
    if not (isinstance(result.get("digest"), str) and isinstance(result.get("id"), str)):
        host.log(f"{job.title}: the job named no digest; look at it: {job.unit}", log_func=logger.error)
        return False
    run_of(state).offers[host.name, key] = Offered(name, str(result["digest"]), str(result["id"]))
    return True


@operation()
def images_received(recipes: Sequence[Recipe]) -> Generator[PyinfraCommand, None, None]:
    """Get what this host lacks from the host that offers it: the lacking layers only, each verified by its digest.

    + recipes: of this host's images
    """
    lacking = [recipe for recipe in recipes if host.name in passing_for(host, recipe).receivers]
    if not lacking:
        host.noop("no image is to come from another host")
    for recipe in lacking:
        builder = passing_for(host, recipe).builder
        run = run_of(host.state)
        offered, access = run.offers.get((builder, image_key(recipe))), run.access.get(builder)
        if host.state.current_stage == StateStage.Prepare:
            differs(f"image {recipe.name}", f"is not there; it comes from {builder}")
            # What is offered is not known yet, but that something will come is.
            yield StringCommand("true")
        elif offered is None or access is None:
            yield refusal(not_offered(host.name, recipe.name, builder, failed=_has_failed(builder)))
        else:
            job = receive_job(offered, str(access["address"]), int(access["port"]))
            yield place_keys(job, str(access["keys"]))
            yield from run_job(job)


def not_offered(name: str, image: str, builder: str, *, failed: bool) -> str:
    """What to tell of a host whose image does not come. `failed`: whether its builder has."""
    if not failed:
        return f"{name}: {builder} does not offer the image {image} any more: run again, without --serial or --no-wait"
    return (
        f"{name}: the image {image} was to come from {builder}, which failed: mend what is told of {builder} and run "
        f"again, or name another host as image.builder. Nothing was built or stopped on {name}"
    )


def _has_failed(builder: str) -> bool:
    return any(other.name == builder for other in host.state.failed_hosts)


def place_keys(job: Job, keys: str) -> StringCommand:
    """Give a host its key for a transfer, by standard input, in a file that root alone may read."""
    path = QuoteString(keys_file(job.key))
    return StringCommand("umask 077; mkdir -p", KEYS, "&& cat >", path, _stdin=keys)


@operation()
def offers_ended() -> Generator[PyinfraCommand, None, None]:
    """Stop what was offered, so that nothing listens and no key is left; also what a run that was cut has left."""
    found = surveyed(host)
    if host.name in run_of(host.state).access or (found is not None and found.leftover):
        yield StringCommand(layout.PYTHON, OFFER, "end")
    else:
        host.noop("nothing is offered")
