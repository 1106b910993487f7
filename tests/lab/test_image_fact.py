"""The fact that decides about builds and pulls, asked of a real dockerd."""

from __future__ import annotations

from shlex import quote

import pytest

from modules.facts.image import ImageOnHost, ImageState
from modules.fleet.lock import read_lock
from modules.images import build_of, pinned
from tests.lab.lab_driver import Lab
from tests.lab.served import Served

pytestmark = pytest.mark.lab
HOST = "spark-1"
BASE = "registry.lab:5000/python:3.11-slim-bookworm"


def look(lab: Lab, reference: str) -> ImageState:
    """What the fact says."""
    fact = ImageOnHost()
    command = fact.command(reference=reference).get_raw_value()
    return fact.parse(lab.ssh(HOST, f"sudo sh -c {quote(command)}").stdout.splitlines())


def test_an_image_that_was_built_is_known_by_its_recipe(lab: Lab, served: Served) -> None:
    recipe = pinned(served.plan.recipe, read_lock(served.fleet))
    assert look(lab, build_of(recipe).tag).recipe == build_of(recipe).digest


def test_an_image_without_any_label_is_there_all_the_same(lab: Lab, served: Served) -> None:
    labels = lab.ssh(HOST, f"sudo docker image inspect -f '{{{{json .Config.Labels}}}}' {BASE}").json
    assert labels is None
    found = look(lab, BASE)
    assert found.id is not None
    assert found.recipe is None


def test_an_image_that_is_not_there_is_told_so(lab: Lab, served: Served) -> None:
    assert look(lab, f"{BASE}-other") == ImageState(None, None)
