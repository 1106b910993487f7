"""Which images came under others' names, and when builds ran, is noted for the day that they are to go."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.hostside.brought_images import brought, forget_image, note_image, noted_build, spans


def test_images_are_noted_and_forgotten_one_by_one(tmp_path: Path) -> None:
    undo = tmp_path / "undo"
    assert brought(undo) == {}
    note_image("python:3.11", "sha256:1", undo)
    note_image("python@sha256:a", "sha256:1", undo)
    forget_image("python:3.11", undo)
    assert brought(undo) == {"python@sha256:a": "sha256:1"}
    forget_image("python@sha256:a", undo)
    assert list(undo.iterdir()) == []


def test_every_build_has_its_time_also_one_that_failed(tmp_path: Path) -> None:
    with noted_build(tmp_path):
        pass
    with pytest.raises(ZeroDivisionError), noted_build(tmp_path):
        raise ZeroDivisionError
    (first, second) = spans(tmp_path)
    assert first[0] <= first[1] <= second[0] <= second[1]
