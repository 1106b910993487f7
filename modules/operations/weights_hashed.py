"""Hash a model's files again, whatever its stamp says."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra import host
from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.weights import VERIFY_PROGRAM, WeightsOnHost
from modules.operations.job import Job, run_job
from modules.operations.require import refusal, unreadable
from modules.operations.weights import Wanted, wish_of
from modules.release import layout

_TIMEOUT_S = 3600


@operation()
def weights_hashed(wanted: Wanted) -> Generator[PyinfraCommand, None, None]:
    """Read every file of a model, and fail the host where one is not what the hub publishes; in a job.

    What is wrong is noted in the stamp, so that the next run of the weights stage makes it right.

    + wanted: the model, and where it is kept
    """
    wish, model = wish_of(wanted), wanted.model
    place = {"repository": model.repository, "revision": wish.commit or model.revision, "home": wanted.weights.home}
    state = host.get_fact(WeightsOnHost, **place)
    if state is None:
        yield from unreadable(f"the weights of {model.repository}")
        return
    if not state.stamped:
        yield refusal(f"{host.name}: {model.repository} was never verified here: run deploys/weights.py first")
        return
    words = [word for name, value in place.items() for word in (f"--{name}", value)]
    command = (layout.PYTHON, VERIFY_PROGRAM, *words, "--hash")
    yield from run_job(Job("verify", wish.key, f"hashing {model.repository.split('/')[1]}", command, _TIMEOUT_S))
