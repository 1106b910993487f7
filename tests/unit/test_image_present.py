"""An image that a host has already is run by its id; an entrypoint stands in the place of the image's."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from modules.images import image_key, image_reference
from modules.release.container import run_arguments
from modules.spec.engine import Container
from modules.spec.image import Recipe
from modules.spec.lock import Lock

ID = f"sha256:{'1b' * 32}"


def test_it_is_run_by_its_id() -> None:
    recipe = Recipe(reference="vllm-node:latest", digest=ID, present=True, source="here")
    assert image_reference(recipe, Lock()) == ID
    assert image_key(recipe) == f"vllm-node:latest@{ID}"


def test_its_id_must_be_named() -> None:
    with pytest.raises(ValidationError, match="its id by digest"):
        Recipe(reference="vllm-node:latest", present=True, source="here")


def test_an_entrypoint_takes_the_place_of_the_commands_first_word() -> None:
    command = ("vllm", "serve", "/weights")

    def words(container: Container) -> tuple[str, ...]:
        return run_arguments("chat", ID, command, container=container, mounts=(), secret_files=())

    assert words(Container(gpus=False))[-4:] == (ID, *command)
    given = words(Container(gpus=False, entrypoint="/opt/venv/bin/vllm"))
    assert given[-5:] == ("--entrypoint", "/opt/venv/bin/vllm", ID, "serve", "/weights")
