"""A recipe that is built in seconds, with the stages of the real ones, for tests of what a build goes through."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modules.fleet.compose import composed_recipe
from modules.images import Build, build_of, pinned
from modules.spec.image import ImageOverride, Recipe
from modules.spec.lock import Lock
from tests.lab.lab_driver import Lab

NAME = "tiny"
BASE = "python:3.11-slim-bookworm"
_FOLDER = Path(__file__).parent / "tiny_recipe"


def tiny(lab: Lab, dockerfile: str | None = None, *, name: str = NAME, **fields: Any) -> dict[str, Any]:
    """The recipe as a fleet file writes it out, with its template beside the lab's fleet files.

    `dockerfile`: another template than the usual one, by another `name`. `fields`: keys of the recipe that differ.
    """
    text = (_FOLDER / "tiny.Dockerfile.j2").read_text() if dockerfile is None else dockerfile
    template = lab.layout.folder / "recipes" / f"{name}.Dockerfile.j2"
    template.parent.mkdir(exist_ok=True)
    template.write_text(text)
    recipe = {
        "template": f"./recipes/{template.name}",
        "base": BASE,
        "pins": pins("a" * 40),
        "packages": {"fast": "1.0"},
        "arguments": {"WAIT": "0"},
        "compiler_gib": 0,
        "size_gib": 0.1,
        "source": "for tests",
    }
    return {**recipe, **fields}


def pins(commit: str) -> dict[str, Any]:
    """Its source trees, all at one commit."""
    return {name: {"repository": f"https://git.lab/{name}", "commit": commit} for name in ("kernels", "server")}


def built(
    lab: Lab, recipe: Mapping[str, Any], override: Mapping[str, Any] | None = None, lock: Lock | None = None
) -> Build:
    """What the product makes of such a recipe. `lock`: where its base was resolved."""
    path = str(lab.layout.folder / str(recipe["template"]))
    written_out = Recipe.model_validate({**recipe, "template": path})
    composed = composed_recipe(written_out, ImageOverride.model_validate(override or {}))
    return build_of(pinned(composed, lock or Lock()))


def fleet_with(lab: Lab, host: str, recipe: Mapping[str, Any], *, name: str = "fleet-tiny", **image: Any) -> Path:
    """A fleet file with that host alone, whose only service has the image of `recipe`; `image`: changes to it."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {host: content["hosts"][host]}
        for service in content["defaults"]["services"].values():
            service["image"] = {"recipe": dict(recipe), **image}

    return lab.write_fleet(name, change)
