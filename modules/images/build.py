"""A recipe rendered: the Dockerfile, the files beside it, and the hash of both that names the image."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from modules.spec.image import TEMPLATE_SUFFIX, Recipe

_ROLE = Path(__file__).parents[2] / "roles" / "image"
_PROBE = Path(__file__).parents[1] / "hostside" / "compile_probe.py"
# Written into every image; by this name the templates copy it.
PROVENANCE = "tinderbox-image.json"


@dataclass(frozen=True)
class Build:
    """What is built. `files`: name → text, the whole context with the Dockerfile."""

    name: str
    base: str
    files: dict[str, str]

    @property
    def digest(self) -> str:
        """Twelve hex digits of the sha256 of the Dockerfile and all files beside it.

        Where things are fetched from, and how many compilers run at once, is not in it: they change no image.
        """
        found = hashlib.sha256()
        for name, text in sorted(self.files.items()):
            for part in (name.encode(), text.encode()):
                found.update(len(part).to_bytes(8, "big") + part)
        return found.hexdigest()[:12]

    @property
    def tag(self) -> str:
        """The image's name: another content has another one."""
        return f"tinderbox/{self.name}:{self.digest}"

    @property
    def key(self) -> str:
        """What a host calls its folder and the job that builds it."""
        return f"{self.name}-{self.digest}"


def build_of(recipe: Recipe) -> Build:
    """Render a recipe that is built; once a process, so that a run builds what it has looked for.

    Raises `ValueError` for one that is pulled, `jinja2.TemplateError` where its template is no template or wants what
    the recipe lacks, `OSError` where the template is not there.
    """
    return _rendered(recipe.model_dump_json())


@cache
def _rendered(document: str) -> Build:
    recipe = Recipe.model_validate_json(document)
    if recipe.template is None or recipe.base is None:
        raise ValueError("a recipe without a template is pulled, not built")
    template, context = _places(recipe.template)
    files = _texts(context)
    files["Dockerfile"] = _templates(template.parent).get_template(template.name).render(_variables(recipe))
    files[PROVENANCE] = json.dumps(provenance(recipe.name, recipe), indent=1, sort_keys=True) + "\n"
    if recipe.architecture is not None:
        files[_PROBE.name] = _PROBE.read_text()
    return Build(name=recipe.name, base=recipe.base, files=files)


def _places(template: str) -> tuple[Path, Path]:
    """The template's file, and the folder of the files that go along."""
    if "/" in template:
        path = Path(template)
        return path, path.with_name(path.name.removesuffix(TEMPLATE_SUFFIX))
    return _ROLE / "templates" / template, _ROLE / "files" / template.removesuffix(TEMPLATE_SUFFIX)


def provenance(name: str, recipe: Recipe) -> dict[str, object]:
    """What an image tells of its origin; the host adds the hash, the time and the base's digest.

    `version`, `revision`, `origin`: of the program that it is for, the recipe's first pin or else its first package.
    """
    revision, origin, version = None, None, None
    if recipe.pins:
        program = next(iter(recipe.pins.values()))
        revision, origin, version = program.commit, program.repository, program.commit[:12]
    elif recipe.packages:
        package, version = next(iter(recipe.packages.items()))
        origin = f"https://pypi.org/project/{package}/{version}/"
    return {
        "recipe": name,
        "version": version,
        "revision": revision,
        "origin": origin,
        "base": recipe.base,
        "architecture": recipe.architecture,
        "sources": {pin: {"repository": of.repository, "commit": of.commit} for pin, of in recipe.pins.items()},
        "packages": recipe.packages,
        "arguments": recipe.arguments,
    }


def _variables(recipe: Recipe) -> dict[str, object]:
    return {
        "base": recipe.base,
        "architecture": recipe.architecture,
        "pins": recipe.pins,
        "packages": recipe.packages,
        "arguments": recipe.arguments,
    }


@cache
def _templates(folder: Path) -> Environment:
    # The output is a Dockerfile, where HTML's escapes would be wrong. Ours lend their macros to others.
    return Environment(  # noqa: S701
        loader=FileSystemLoader([folder, _ROLE / "templates"]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())} if folder.is_dir() else {}
