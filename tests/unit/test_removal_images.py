"""Images that go: by the names that they came under, as long as these are still theirs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modules.hostside import removal_images
from modules.hostside.brought_images import brought, note_image
from modules.hostside.docker_store import Image, Store
from modules.hostside.removal import Thing

OURS, THEIRS = "sha256:1", "sha256:2"
NAME = "python:3.11"


class Docker:
    """`images`: id → its tags."""

    def __init__(self, images: dict[str, list[str]]) -> None:
        self.images = images

    def inspect(self, reference: str) -> dict[str, Any] | None:
        found = [one for one, names in self.images.items() if reference == one or reference in names]
        return {"Id": found[0], "RepoTags": self.images[found[0]]} if found else None

    def capture(self, *words: str) -> subprocess.CompletedProcess[str]:
        assert words[:2] == ("image", "rm")
        found = self.inspect(words[2])
        assert found is not None
        names = [name for name in found["RepoTags"] if name != words[2]]
        assert words[2] != found["Id"] or not names, "docker takes such an image by force only"
        self.images[found["Id"]] = names
        if not names:
            del self.images[found["Id"]]
        return subprocess.CompletedProcess(words, 0, "", "")


def base(tmp_path: Path) -> Thing:
    note_image(NAME, OURS, tmp_path / "undo")
    (thing,) = removal_images.things(Store(images=(Image(OURS, (), 1),)), tmp_path)
    return thing


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({OURS: [NAME]}, {}),
        ({OURS: [], THEIRS: [NAME]}, {THEIRS: [NAME]}),
        ({OURS: ["mine:1"], THEIRS: [NAME]}, {OURS: ["mine:1"], THEIRS: [NAME]}),
        ({OURS: [NAME, "mine:1"]}, {OURS: ["mine:1"]}),
        ({}, {}),
    ],
    ids=["as it came", "its name is another's by now", "it has a name of others", "it has both", "it is gone"],
)
def test_a_base_goes_and_no_image_that_somebody_else_has_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, list[str]], after: dict[str, list[str]]
) -> None:
    docker = Docker(before)
    monkeypatch.setattr(removal_images, "docker", docker)
    removal_images.take(base(tmp_path), tmp_path)
    assert docker.images == after
    assert brought(tmp_path / "undo") == {}


def test_what_is_gone_is_forgotten_also_where_its_name_is_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal_images, "docker", SimpleNamespace(inspect=Docker({THEIRS: [NAME]}).inspect))
    note_image(NAME, OURS, tmp_path / "undo")
    note_image("other:1", THEIRS, tmp_path / "undo")
    removal_images.tidy(tmp_path)
    assert brought(tmp_path / "undo") == {"other:1": THEIRS}
