"""Images are looked into before an engine runs from them."""

from __future__ import annotations

import hashlib
from collections.abc import Generator

from pyinfra import host, logger
from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.attestation import Attested, ImageAttestation
from modules.facts.survey import Question
from modules.fleet import load_fleet
from modules.fleet.lock import read_lock
from modules.images import image_reference
from modules.images.attestation import Needs, asked_of, refusals
from modules.operations.job import Job, run_job
from modules.operations.require import refusal, unreadable
from modules.release import layout
from modules.spec.attestation import Attestation
from modules.spec.image import Recipe

# The program has half an hour by itself; the rest is for a docker that is slow to start.
_TIMEOUT_S = 2400


def attest_job(reference: str, recipe: Recipe) -> Job:
    """The job that looks into an image."""
    ask = asked_of(recipe).model_dump_json()
    key = hashlib.sha256(f"{reference}\0{ask}".encode()).hexdigest()[:12]
    command = [layout.PYTHON, str(layout.PROGRAMS / "attest_image.py"), reference, "--ask", ask]
    # What is pulled has no label of ours that says so.
    command += ["--gpus", "all"] if recipe.reference is not None and recipe.architecture is not None else []
    return Job("attest", key, f"looking into image {reference}", tuple(command), _TIMEOUT_S)


def refusal_of(name: str, reference: str, seen: Attestation | None, recipe: Recipe, needs: Needs) -> str | None:
    """What to tell the operator of a host's image that may not serve; None: it may. `name`: the host's."""
    if seen is None or seen.asked != asked_of(recipe):
        return f"{name}: the image {reference} was looked into, but what was seen is not there"
    lines = refusals(seen, recipe, needs)
    if not lines:
        return None
    return "\n".join([f"{name}: the image {reference} can not serve this engine:", *(f"  {line}" for line in lines)])


def is_asked(recipe: Recipe, needs: Needs) -> bool:
    """Whether anything is asked of the image."""
    return recipe.attest.wanted or needs.native_fp4


def attestation_there(recipe: Recipe) -> Question[Attested]:
    """What was seen in the image, on the host."""
    return Question(ImageAttestation, {"reference": image_reference(recipe, read_lock(load_fleet().path))})


@operation()
def image_attested(recipe: Recipe, needs: Needs) -> Generator[PyinfraCommand, None, None]:
    """Refuse an image that does not hold what its engine needs.

    It is looked into once, as a job, and again only for other questions.

    + recipe: of the image, which is on the host by now
    + needs: of the engine
    """
    if not is_asked(recipe, needs):
        host.noop("nothing is asked of this image")
        return
    reference = image_reference(recipe, read_lock(load_fleet().path))
    found = attestation_there(recipe).of(host)
    if found is None:
        yield from unreadable(f"the attestation of {reference}")
    elif found.seen is None or found.seen.asked != asked_of(recipe):
        yield from run_job(attest_job(reference, recipe))
        yield FunctionCommand(_judge, (reference, recipe, needs), {})
    elif message := refusal_of(host.name, reference, found.seen, recipe, needs):
        yield refusal(message)
    else:
        host.noop(f"image {reference} holds what its engine needs")


def _judge(state: State, host: Host, reference: str, recipe: Recipe, needs: Needs) -> bool:
    """Judge what a job has just seen; also what pyinfra calls."""
    found = host.get_fact(ImageAttestation, reference=reference)
    message = refusal_of(host.name, reference, None if found is None else found.seen, recipe, needs)
    if message is not None:
        host.log(message, log_func=logger.error)
    return message is None
