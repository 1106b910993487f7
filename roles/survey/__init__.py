"""What all stages of a run will ask of a host, asked in one round trip."""

from __future__ import annotations

from pyinfra import host

from modules.fleet import HostPlan
from modules.operations import survey
from roles import cuda, encodings, engine, fabric, gate, gateway, image, monitoring, runtime, site, system, weights
from roles.weights import load

STAGES = (site, system, fabric, cuda, runtime, image, encodings, weights, load, engine, gate, monitoring, gateway)


def surveyed(plan: HostPlan) -> None:
    """Foresee the questions of the stages of deploys/spark.py. A stage that is not among them asks for itself."""
    survey.survey(host, [question for stage in STAGES for question in stage.questions(plan)])
